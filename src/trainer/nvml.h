/*
 * nvml.h - the GPUs as NVML shows them: all of the machine's, whatever CUDA_VISIBLE_DEVICES hides, and who uses them.
 */
#ifndef AG_TRAINER_NVML_H
#define AG_TRAINER_NVML_H

/* Prints the lines "nvml" and "smi" of probe.h. Never fails. */
void ag_nvml_print(void);

#endif
