/* What a driver's build log says of a kernel. */
#ifndef BUILD_REPORT_H
#define BUILD_REPORT_H

enum { NOT_TOLD = -1 };

/* Each may be NOT_TOLD. */
struct build_report {
    long registers;                        /* of a work-item */
    long stack, spill_stores, spill_loads; /* bytes of a work-item */
};

/* Reads the log of NVIDIA's ptxas, which has some lines on each kernel; the last that it says of this one. */
struct build_report build_report_read(const char *log, const char *kernel);

#endif
