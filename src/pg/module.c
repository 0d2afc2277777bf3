/*
 * module.c - what the server looks for when it loads ag_pg.so.
 */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;
