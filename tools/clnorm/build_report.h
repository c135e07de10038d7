/* Registers and spills of a kernel, from the driver's build log. */
#ifndef BUILD_REPORT_H
#define BUILD_REPORT_H

enum { NOT_REPORTED = -1 };

/* Each may be NOT_REPORTED. */
struct build_report {
    long registers;                        /* of a work-item */
    long stack, spill_stores, spill_loads; /* bytes of a work-item */
};

/* Reads the log of NVIDIA's ptxas. Where it has several sections on this kernel, the last one counts. */
struct build_report build_report_read(const char *log, const char *kernel);

#endif
