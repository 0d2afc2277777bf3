# ag_doctor() and ag_gpus() on invented machines: libcuda.so.1, libnvidia-ml.so.1 and ag_pg_cuda.so are small fakes, compiled here, that lie in
# a folder of the server's LD_LIBRARY_PATH and beside a copy of the library and its program. No GPU is needed; a real one is never asked.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use File::Copy qw(copy);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);

plan skip_all => 'there is no C compiler (cc)' if system('cc --version >/dev/null 2>&1') != 0;

my $tmp = PostgreSQL::Test::Utils::tempdir();
my $fakes = "$tmp/fakes";
my $home = "$tmp/odd \$(touch x) 'n\" & name";    # the installation: no shell may ever see this
mkdir $_ for $fakes, $home;
chomp(my $libdir = `$ENV{PG_CONFIG} --pkglibdir`);

# A file in use is replaced, never written over: a session that still ends would find its code gone.
sub install
{
	for ('ag_pg.so', 'ag_trainer')
	{
		unlink "$home/$_";
		copy("$libdir/$_", "$home/$_") or die "$_: $!";
	}
	chmod 0755, "$home/ag_trainer";
	return;
}

sub compile
{
	my ($to, $source, @defines) = @_;
	open my $file, '>', "$tmp/fake.c" or die;
	print $file $source;
	close $file;
	unlink $to;
	system('cc', '-shared', '-fPIC', '-I.', '-Isrc', (map { "-D$_" } @defines), '-o', $to, "$tmp/fake.c") == 0 or die "cc failed for $to";
	return;
}

sub spill
{
	my ($to, $bytes) = @_;
	unlink $to;
	open my $file, '>:raw', $to or die "$to: $!";
	print $file $bytes;
	close $file;
	chmod 0755, $to;
	return;
}

my $LIBCUDA = <<'C';
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifndef INIT
#define INIT 0
#endif
#ifndef DRIVER
#define DRIVER 13000
#endif
#ifndef COUNT
#define COUNT 1
#endif
#ifndef MODE
#define MODE 0
#endif
int cuInit(unsigned flags)
{
#ifdef HANG
	sleep(600);
#endif
#ifdef CRASH
	*(volatile int *) 8 = 1;
#endif
	puts("chatter on standard output");
	fflush(stdout);
	return INIT;
}
int cuDriverGetVersion(int *v) { *v = DRIVER; return 0; }
int cuDeviceGetCount(int *n) { *n = COUNT; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDeviceGetName(char *s, int n, int d) { snprintf(s, n, "Fake\tGPU %d", d); return 0; }
int cuDeviceGetUuid(unsigned char *u, int d) { memset(u, 0x11 * (d + 1), 16); return 0; }
int cuDeviceTotalMem_v2(size_t *b, int d) { *b = 8000000000; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 8 : a == 76 ? 6 : a == 20 ? MODE : 0; return 0; }
C

my $NVML = <<'C';
#include <stdio.h>
#include <string.h>
struct process { unsigned pid; unsigned long long used; unsigned a, b; };
int nvmlInit_v2(void) { return 0; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { snprintf(s, n, "580.65.06"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *) (long) (i + 1); return 0; }
int nvmlDeviceGetName(void *d, char *s, unsigned n) { snprintf(s, n, "Fake"); return 0; }
int nvmlDeviceGetUUID(void *d, char *s, unsigned n)
{
	const char *x = d == (void *) 1 ? "11111111" : "22222222";
	snprintf(s, n, "GPU-%s-%.4s-%.4s-%.4s-%s%.4s", x, x, x, x, x, x);
	return 0;
}
int nvmlDeviceGetMemoryInfo(void *d, unsigned long long *m) { m[0] = 8000000000; m[1] = 7000000000; m[2] = 1; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, struct process *p)
{
	*n = d == (void *) 1 ? 2 : 0;
	if (*n) { p[0].pid = 4711; p[1].pid = 4712; }
	return 0;
}
C

my $MODULE = <<'C';
#include <string.h>
#include <stdio.h>
#include "kernels/ag_cuda.h"
#ifndef USABLE
#define USABLE 1
#endif
#ifndef FREE
#define FREE 6000000000
#endif
static void probe(AgCudaProbe *f)
{
	memset(f, 0, sizeof *f);
	f->driver_version = f->runtime_version = 13000;
#ifdef VERDICT
	strcpy(f->reason, "the verdict of the module");
	return;
#endif
	f->n_devices = 1;
	f->n_usable = USABLE;
	strcpy(f->devices[0].name, "Fake");
	strcpy(f->devices[0].uuid, "GPU-11111111-1111-1111-1111-111111111111");
	f->devices[0].capability_major = 8;
	f->devices[0].capability_minor = 6;
	f->devices[0].total_bytes = 8000000000;
	f->devices[0].free_bytes = FREE;
	f->devices[0].usable = USABLE;
	if (!USABLE) { strcpy(f->devices[0].reason, "no code for 8.6"); strcpy(f->devices[0].cure, "Build for it."); strcpy(f->reason, "GPU 0: no code for 8.6"); }
}
bool ag_cuda_init(uint32_t abi, AgCudaTable *t)
{
#ifdef FOREIGN
	return 0;
#endif
	t->abi = abi; t->architectures = "sm_86 compute_86"; t->probe = probe;
	return 1;
}
C

sub libcuda { compile("$fakes/libcuda.so.1", $LIBCUDA, @_); return; }
sub module { compile("$home/ag_pg_cuda.so", $MODULE, @_); return; }

install();
$ENV{LD_LIBRARY_PATH} = join ':', $fakes, $ENV{LD_LIBRARY_PATH} // ();
delete $ENV{CUDA_VISIBLE_DEVICES};
my $node = PostgreSQL::Test::Cluster->new('doctor');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\n");
$node->start;
(my $quoted = "$home/ag_pg") =~ s/'/''/g;
$node->safe_psql('postgres', qq{
	CREATE FUNCTION ag_doctor() RETURNS TABLE ("check" text, status text, found text, cure text) LANGUAGE c AS '$quoted', 'ag_sql_doctor';
	CREATE FUNCTION ag_gpus() RETURNS TABLE (index int, uuid text, name text, cc text, total bigint, free bigint, driver text, runtime text,
		usable bool, reason text, pids int[]) LANGUAGE c AS '$quoted', 'ag_sql_gpus';
	CREATE ROLE plain; CREATE ROLE watcher; GRANT pg_monitor TO watcher;});

sub doctor { my ($where, $before) = @_; return $node->safe_psql('postgres', ($before // '') . "SELECT \"check\", status, found, cure FROM ag_doctor() " . ($where // 'LIMIT 1')); }
sub gpus { my ($columns, $before) = @_; return $node->safe_psql('postgres', ($before // '') . "SELECT $columns FROM ag_gpus()"); }
sub bad { return $node->safe_psql('postgres', q{SELECT coalesce(string_agg("check" || ' ' || status, ','), '') FROM ag_doctor() WHERE status <> 'ok'}); }

# --- the driver's library
SKIP:
{
	skip 'this machine has a libcuda.so.1', 3 if `/sbin/ldconfig -p 2>/dev/null` =~ /libcuda\.so\.1/ || -e '/usr/lib/wsl/lib/libcuda.so.1';
	module('VERDICT');
	like(doctor(), qr{^libcuda\|(warn|fail)\|.*No such file or directory; tried: \Q$fakes\E/libcuda\.so\.1, .*LD_LIBRARY_PATH is}, 'no library: the loader\'s words and where it looked');
	unlike(doctor(undef, 'SET ROLE plain;'), qr{\Q$tmp\E}, 'others see no paths');
	is(gpus('count(*)'), '0', 'and no GPU');
}
spill("$fakes/libcuda.so.1", "not a library, though long enough to have had a header of one, one would think" x 3);
like(doctor(), qr{^libcuda\|fail\|.*can't be loaded: \Q$fakes\E/libcuda\.so\.1: (invalid ELF header|file too short).*\(there\).*\|.*LD_LIBRARY_PATH}, 'a broken library');
like(doctor(undef, 'SET ROLE watcher;'), qr{\Q$tmp\E}, 'members of pg_monitor see the paths');
compile("$fakes/libcuda.so.1", 'int cuInit(unsigned f) { return 0; }');
like(doctor(), qr{^libcuda\|fail\|.*lacks functions}, 'a library that is none of NVIDIA\'s');

# --- what the driver answers
libcuda('INIT=100');
module();
like(doctor(), qr{^driver\|fail\|the NVIDIA driver reports no GPU\|See whether nvidia-smi}, 'no device');
libcuda('COUNT=0');
like(doctor(), qr{^driver\|fail\|the NVIDIA driver reports no GPU}, 'none of them counted');
libcuda('INIT=34');
like(doctor(), qr{^libcuda\|fail\|.*link-time copy}, 'the link-time library of the toolkit');
libcuda('INIT=803');
like(doctor(), qr{^driver\|fail\|.*different versions\|Reboot}, 'library and kernel module of different versions');
libcuda('INIT=999');
like(doctor(), qr{^driver\|fail\|.*error 999}, 'any other error');
libcuda('CRASH');
like(doctor(), qr{^probe\|fail\|ag_trainer --probe was killed by signal 11, while starting the NVIDIA driver \(cuInit\)\|}, 'a driver that crashes');
is($node->safe_psql('postgres', 'SELECT 1'), '1', 'does so outside the server');

# --- the module
libcuda();
unlink "$home/ag_pg_cuda.so";
like(doctor(), qr{^cuda_module\|fail\|the CUDA module ag_pg_cuda.so is not installed: .*\|Build ag_pg}, 'no module');
is(gpus('index, uuid, name, cc, total, usable, reason'), '0|GPU-11111111-1111-1111-1111-111111111111|Fake\\x09GPU 0|8.6|8000000000|f|the CUDA module ag_pg_cuda.so is not installed',
	'the GPU is listed, with the reason');
spill("$home/ag_pg_cuda.so", 'rubbish');
like(doctor(), qr{^cuda_module\|fail\|.*can't be loaded: .*(invalid ELF header|file too short)}, 'a broken module');
unlike(doctor(undef, 'SET ROLE plain;'), qr{\Q$tmp\E}, 'its path is not for everybody');
module('FOREIGN');
like(doctor(), qr{^cuda_module\|fail\|.*another build}, 'a module of another ABI');

# --- versions
module('VERDICT');
libcuda('DRIVER=11040');
like(doctor(), qr{^driver_version\|fail\|the NVIDIA driver serves CUDA 11.4, but the module was built with CUDA 13.0\|Update the driver to 580.65.06 or newer, or build ag_pg with a CUDA 11 toolkit},
	'a driver too old');
is(gpus('usable, reason'), 'f|the NVIDIA driver serves CUDA 11.4, but the module was built with CUDA 13.0', 'is why the GPU is of no use');
like(doctor(q{WHERE "check" = 'toolkits'}), qr{^toolkits\|ok\|CUDA 11.8: driver 450.80.02.*CUDA 13: driver 580.65.06}s, 'the table of toolkits, drivers and GPUs');
libcuda('DRIVER=13000');
like(doctor(), qr{^kernels\|fail\|the verdict of the module}, 'what only the module finds');

# --- devices
module('USABLE=0');
like(doctor(q{WHERE "check" = 'gpu 0'}), qr{^gpu 0\|fail\|.*no code for 8.6\|Build for it}, 'no code for this GPU');
is(gpus('usable, reason'), 'f|no code for 8.6', 'and ag_gpus says so');
module('FREE=100000000');
like(doctor(q{WHERE "check" = 'gpu 0'}), qr{^gpu 0\|warn\|.*only 0.1 of 8.0 GB}, 'a full GPU');
module();
libcuda('MODE=3');
like(doctor(q{WHERE "check" = 'compute_mode'}), qr{^compute_mode\|warn\|GPU 0 is in mode exclusive.*nvidia-smi -i 0 -c DEFAULT}, 'a GPU in exclusive mode');
libcuda();
is(gpus('index, name, cc, total, free, runtime, usable, reason'), '0|Fake\\x09GPU 0|8.6|8000000000|6000000000|13.0|t|', 'a GPU of use');
SKIP:
{
	skip 'this machine has an NVML', 1 if `/sbin/ldconfig -p 2>/dev/null` =~ /libnvidia-ml\.so\.1/;
	is(bad(), 'nvml warn', 'only NVML is missed');
}
compile("$fakes/libnvidia-ml.so.1", $NVML);
is(bad(), '', 'all is well');
is(gpus(q{string_agg(concat_ws(' ', index, driver, free, usable, pids), ',')}), '0 580.65.06 6000000000 t {4711,4712}, 580.65.06 7000000000 f {}' =~ s/, /,/r,
	'with NVML: processes, and GPUs that CUDA does not show');
is(gpus('count(pids)', 'SET ROLE plain;'), '0', 'processes are not for everybody');
is(gpus('count(pids)', 'SET ROLE watcher;'), '2', 'but for members of pg_monitor');
unlike($node->safe_psql('postgres', q{SELECT count(*) FROM ag_gpus(); SELECT pg_read_file('/proc/self/maps')}), qr/libcuda|nvidia|ag_pg_cuda/, 'CUDA never comes into the server');

# --- a driver that hangs
libcuda('HANG');
my $began = time;
like(doctor(), qr{^probe\|fail\|ag_trainer --probe didn't answer within 10 s, while starting the NVIDIA driver}, 'a driver that hangs');
cmp_ok(time - $began, '<', 25, 'holds nobody up');
$began = time;
my (undef, undef, $err) = $node->psql('postgres', q{SET statement_timeout = '1s'; SELECT * FROM ag_gpus()});
like($err, qr/statement timeout/, 'it can be cancelled');
cmp_ok(time - $began, '<', 6, 'at once');
ok(wait_until(5, sub { scalar(grep { (readlink($_) // '') eq "$home/ag_trainer" } glob '/proc/[0-9]*/exe') == 0 }), 'no program is left behind');

# --- the program
spill("$home/ag_trainer", "#!/bin/sh\nprintf 'build\\tother\\n\\n\\t\\t\\nrun\\t-7\\tu\\n\\377\\376\\tx\\ncuda\\t99999999999999999999\\tx\\tx\\nnul\\0byte\\nsmi\\ngpu'\nhead -c 5000 /dev/zero | tr '\\\\0' a; echo; echo done; exec sleep 1\n");
like(doctor(), qr{^ag_trainer\|fail\|.*of build other, the library of build 0\.}, 'a program of another build, and lines that make no sense');
like(gpus('count(*)'), qr/^\d$/, 'which harm nobody');
spill("$home/ag_trainer", "#!/bin/sh\nexec yes 'build	x'\n");
like(doctor(), qr{^ag_trainer\|fail\|}, 'a program that never stops talking is stopped');
spill("$home/ag_trainer", "#!/bin/sh\nexit 3\n");
like(doctor(), qr{exited with code 3, while starting}, 'a program that fails');
unlink "$home/ag_trainer";
like(doctor(), qr{^ag_trainer\|fail\|.*can't be run: could not start.*No such file.*\|.*install ag_pg again}, 'no program');
install();

# --- machines that can't be had here, told by a program that only says what they would
chomp(my $build = `'$libdir/ag_trainer' --version`);
$build =~ s/^ag_trainer //;

sub machine
{
	my (@lines) = @_;
	spill("$home/ag_trainer", join "\n", '#!/bin/sh', "exec cat <<'END'", "build\t$build", (map { s/ \| /\t/gr } @lines), 'done', 'END', '');
	return;
}
my @missing = ('tried | /usr/lib/libcuda.so.1 | No such file or directory',
	'libcuda | missing |  | libcuda.so.1: cannot open shared object file: No such file or directory', 'module | open | /m');
my @driver = ('libcuda | loaded | /usr/lib/libcuda.so.1 | ', 'driver | 13000');
machine('wsl', 'node | /dev/dxg | ', 'pci | 0', @missing);
like(doctor(), qr{^libcuda\|fail\|.*\|On WSL2.*/usr/lib/wsl/lib.*no Linux driver}, 'WSL2 without its library');
machine('wsl', 'pci | 0', 'elsewhere | /usr/lib/wsl/lib/libcuda.so.1', @missing);
like(doctor(), qr{^libcuda\|fail\|.*\|It lies in /usr/lib/wsl/lib.*ld\.so\.conf\.d}, 'the library of WSL2 where the loader does not look');
machine('pci | 1', @missing);
like(doctor(), qr{^libcuda\|fail\|.*\|Install the NVIDIA driver}, 'a GPU on the bus, and no driver');
machine('pci | 1', 'kernel | NVRM 580', @missing);
like(doctor(), qr{^libcuda\|fail\|.*\|The kernel module is loaded, its library is missing}, 'half a driver');
machine('pci | 1', 'kernel | x', 'node | /dev/nvidia0 | Permission denied', 'node | /dev/nvidiactl | ', @driver, 'init | 100');
like(doctor(), qr{^device_nodes\|fail\|.*: /dev/nvidia0: Permission denied\|.*group "video"}, 'device nodes that the server may not open are the cause, not the effect');
machine('pci | 1', 'kernel | x', 'node | /dev/nvidia-uvm | No such file or directory', @driver, 'init | 0', 'count | 0 | 1');
like(doctor(q{WHERE "check" = 'device_nodes'}), qr{^device_nodes\|warn\|.*nvidia-uvm.*\|Run nvidia-modprobe}, 'a device node that is missing');
for ([ 2, 'no memory' ], [ 46, 'busy.*nvidia-smi -c DEFAULT' ], [ 101, 'CUDA_VISIBLE_DEVICES names' ], [ 304, 'refuses access' ], [ 802, 'fabric' ], [ 804, 'compat' ])
{
	my ($code, $text) = @$_;
	machine('pci | 1', @driver, "init | $code");
	like(doctor(), qr{^driver\|fail\|.*$text}, "answer $code of the driver");
}
install();

# --- the server's own settings
libcuda();
like(doctor(q{WHERE "check" = 'dynamic_library_path'}, q{SET dynamic_library_path = '/nowhere';}), qr{^dynamic_library_path\|fail\|}, 'no $libdir in dynamic_library_path');
like(doctor(q{WHERE "check" = 'dynamic_library_path'}, q{SET dynamic_library_path = '';}), qr{^dynamic_library_path\|fail\|}, 'nothing in it');
like(doctor(q{WHERE "check" = 'dynamic_library_path'}, q{SET dynamic_library_path = '/nowhere:$libdir';}), qr{^dynamic_library_path\|ok\|}, '$libdir in it');
my $load = "LOAD '$quoted';";
like(doctor(q{WHERE "check" = 'memory'}, $load . q{SET ag_pg.memory_limit = '1000TB';}), qr{^memory\|warn\|.*Lower ag_pg.memory_limit}, 'more memory than there is');
like(doctor(q{WHERE "check" = 'cpus'}, $load . q{SET ag_pg.num_cpus = 4000;}), qr{^cpus\|warn\|}, 'more CPUs than there are');
like(doctor(q{WHERE "check" = 'worker_slots'}), qr{^worker_slots\|ok\|7 of 8 }, 'worker slots: the logical replication launcher has one');

# --- the environment of the postmaster
$node->stop;
$ENV{CUDA_VISIBLE_DEVICES} = '7';
$node->append_conf('postgresql.conf', "max_worker_processes = 1\n");
libcuda('INIT=100');
$node->start;
like(doctor(), qr{^visible_devices\|fail\|CUDA_VISIBLE_DEVICES is "7", which shows no GPU.*restart PostgreSQL}, 'a variable that hides all GPUs');
like(doctor(q{WHERE "check" = 'worker_slots'}), qr{^worker_slots\|warn\|0 of 1 }, 'no worker slot is free');
libcuda();
like(doctor(q{WHERE "check" = 'visible_devices'}), qr{^visible_devices\|warn\|.*hides 1 of}, 'a variable that hides one');
like(gpus(q{string_agg(reason, '')}), qr/CUDA_VISIBLE_DEVICES doesn't show it/, 'and that one is listed');
$node->stop;
ok(!-e 'x' && !-e "$tmp/x", 'no shell has read the name of the folder');
done_testing();
