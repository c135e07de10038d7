/* Where rows begin and end. With LEADS a row begins anywhere within a vector, with TAILS it ends anywhere within one. */
#ifndef LEADS_H
#define LEADS_H

#ifndef LEADS
#define LEADS 0
#endif
#ifndef TAILS
#define TAILS 0
#endif

#define MOST_LEAD (LEADS ? VEC - 1 : 0) /* the most elements from the start of a row's first vector to the row */

#endif
