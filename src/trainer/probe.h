/*
 * probe.h - `ag_trainer --probe`: what there is of GPUs, driver and module, for ag_gpus() and ag_doctor().
 *
 * One fact a line on standard output, fields parted by tabs, control characters written \xHH. Each line is out before the
 * next thing is tried, so that a driver that hangs or crashes leaves all that was found before, and the last "step" names it.
 *
 *   build ID                           of this program
 *   env NAME VALUE                     CUDA_VISIBLE_DEVICES, LD_LIBRARY_PATH, where set
 *   wsl                                this is WSL2
 *   pci N                              NVIDIA's display and compute devices on the PCI bus
 *   kernel TEXT                        the driver's kernel module is loaded, and this is its version
 *   node PATH WHY                      a device node; WHY is empty when it can be read and written
 *   step WHAT                          what is tried next
 *   libcuda STATE PATH WHY             loaded, missing or unloadable; the file; the loader's own words
 *   tried PATH WHY                     a place of libcuda.so.1; WHY is empty when a file is there
 *   elsewhere PATH                     a libcuda.so.1 where the loader doesn't look
 *   driver VERSION                     newest CUDA that the driver can serve, as 12040
 *   init CODE                          answer of cuInit
 *   count CODE N                       answer of cuDeviceGetCount
 *   cuda INDEX UUID NAME MAJOR MINOR TOTAL MODE
 *   nvml STATE VERSION                 loaded, missing or failed; the driver's version
 *   smi UUID NAME TOTAL FREE PIDS      a GPU as NVML shows it; -1: unknown; PIDS "12 345", "-" when they can't be listed
 *   module STATE PATH WHY              nowhere, absent, unloadable, foreign or open
 *   runtime VERSION ARCHITECTURES      CUDA the module was built with, and what it has code for
 *   verdict REASON CURE                why the module can use no GPU at all
 *   run INDEX UUID NAME MAJOR MINOR TOTAL FREE USABLE REASON CURE
 *   done
 */
#ifndef AG_TRAINER_PROBE_H
#define AG_TRAINER_PROBE_H

#include <stdbool.h>

/* False when standard output can't be written. What libraries print themselves goes to standard error. */
bool ag_probe_print(const char *build_id);

#endif
