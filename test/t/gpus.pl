# GPUs are a budget over all running fits: shares of them are leased, never twice, and ag_pg.gpu_fallback says what happens when none is
# left. The module is a fake, compiled here, that claims GPUs; it lies beside a copy of the library and its program in a folder that stands
# before the server's own in dynamic_library_path, where background workers look. No GPU is needed; a real one is never asked.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use File::Copy qw(copy);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'there is no C compiler (cc)' if system('cc --version >/dev/null 2>&1') != 0;

my $home = PostgreSQL::Test::Utils::tempdir() . '/installation';
mkdir $home;
chomp(my $libdir = `$ENV{PG_CONFIG} --pkglibdir`);
copy("$libdir/$_", "$home/$_") or die "$_: $!" for 'ag_pg.so', 'ag_trainer';
chmod 0755, "$home/ag_trainer";

my $MODULE = <<'C';
#include <stdio.h>
#include <string.h>
#include "kernels/ag_cuda.h"
#ifndef GPUS
#define GPUS 2
#endif
#ifndef FAMILIES
#define FAMILIES "GBM XGB RF XT LR KNN NN_TORCH"
#endif
static void probe(AgCudaProbe *f)
{
	memset(f, 0, sizeof *f);
	f->driver_version = f->runtime_version = 13000;
#ifdef REASON
	f->driver_version = DRIVER;
	strcpy(f->reason, REASON);
	strcpy(f->cure, "Cure it.");
	return;
#endif
	f->n_devices = f->n_usable = GPUS;
	for (int i = 0; i < GPUS; i++)
	{
		AgCudaDevice *d = &f->devices[i];
		d->index = i;
		snprintf(d->name, sizeof d->name, "Fake %d", i);
		d->total_bytes = 10000000000;
		d->free_bytes = i == 0 ? 9500000000 : 2000000000;
		d->usable = 1;
	}
}
#ifdef BROKEN
static AgDeviceStatus open(int index, int64_t limit, AgDevice **device, char *why, int size)
{
	*device = 0;
	snprintf(why, size, "it is out of order");
	return AG_DEVICE_LOST;
}
static const AgDeviceOps ops = {.abi = AG_DEVICE_ABI, .kind = "cuda", .open = open};
#endif
bool ag_cuda_init(uint32_t abi, AgCudaTable *t)
{
	t->abi = abi; t->architectures = "sm_90"; t->families = FAMILIES; t->probe = probe; t->ops = 0;
#ifdef BROKEN
	t->ops = &ops;
#endif
#ifdef FOREIGN
	return 0;
#endif
	return abi == AG_CUDA_ABI;
}
C

sub module
{
	open my $file, '>', "$home/fake.c" or die;
	print $file $MODULE;
	close $file;
	unlink "$home/ag_pg_cuda.so";
	system('cc', '-shared', '-fPIC', '-I.', '-Isrc', (map { "-D$_" } @_), '-o', "$home/ag_pg_cuda.so", "$home/fake.c") == 0 or die 'cc failed';
	return;
}

module();
$ENV{LD_LIBRARY_PATH} = join ':', $home, $ENV{LD_LIBRARY_PATH} // ();
my $node = PostgreSQL::Test::Cluster->new('gpus');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nmax_worker_processes = 8\ndynamic_library_path = '$home:\$libdir'\n");
$node->start;
make_data($node);
my $PART = '"num_cpus": 1, "verbosity": 3';

# What a quick fit says; before: settings.
sub told
{
	my ($options, $before) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', ($before // '') . "SELECT ag_fit('small', 'y', '{\"name\": \"quick\"" . ($options ? ", $options" : '') . "}')");
	return $err . ($rc == 0 ? "stored $out" : 'failed');
}
my $GBM = '"hyperparameters": {"GBM": {"num_boost_round": 5}}, ' . $PART;

# Shares of a GPU that are leased.
sub leased { my ($gpu) = @_; return $node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE database = 0 AND objsubid = 16711 AND classid = " . (4 + $gpu)); }
sub cancel { my ($name) = @_; $node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%$name%' AND backend_type = 'client backend' AND pid <> pg_backend_pid()"); return; }
sub wait_leased { my ($gpu, $n) = @_; return wait_until(30, sub { leased($gpu) == $n }); }

# --- one fit
like(told($GBM), qr/'num_gpus': 0, /, 'nobody asks: no GPU is used');
unlike(told($GBM), qr/WARNING|Uses/, 'nor spoken of');
like(told("\"num_gpus\": 1, $GBM"), qr/Uses 1 of GPU cuda:0 \(Fake 0\), 9.00 GB of its memory\n.*Fitting GBM with 'num_gpus': 1, 'num_cpus': 1/s, 'a GPU for the fit');
like(told("\"num_gpus\": \"auto\", $GBM"), qr/Uses 1 of GPU cuda:0/, 'as many as can be used');
like(told("\"ag_args_fit\": {\"num_gpus\": 0.5}, $GBM"), qr/Uses 0.5 of GPU cuda:0 \(Fake 0\), 4.50 GB.*Fitting GBM with 'num_gpus': 0.5, 'num_cpus': 1/s, 'a part of one');
like(told("\"num_gpus\": 2, $GBM"), qr/Uses 1 of GPU cuda:1 \(Fake 1\), 2.00 GB/, 'no more of its memory than is free');
like(told("\"num_gpus\": 1, $GBM", 'SET ag_pg.gpu_memory_fraction = 0.3; '), qr/3.00 GB of its memory/, 'ag_pg.gpu_memory_fraction');
like(told("\"ag_args_fit\": {\"num_gpus\": 0.5}, \"num_bag_folds\": 3, $GBM"),
	qr/Fitting GBM_BAG_L1 with 'num_gpus': 0.5, 'num_cpus': 1\n.*Folding resources per job \{'num_gpus': 0.5, 'num_cpus': 1\}/, 'the two lines of a bag');

like(told("\"num_gpus\": 2, \"dry_run\": true, $GBM"), qr/Would fit GBM on cuda:0: .*"device": "cuda:0", "num_gpus": 1, "num_cpus": 1/s, 'a plan names the GPU');

# --- more than there is
my $many = told("\"num_gpus\": 3, $GBM");
like($many, qr/WARNING:  not all GPUs that were asked for can be used: 3 GPUs are asked for, and 2 can be used\nHINT:.*ag_gpus\(\)/, 'a total over what exists');
is(scalar(() = $many =~ /WARNING/g), 1, 'is one WARNING');
like($many, qr/Uses 1 of GPU cuda:1.*stored quick/s, 'and what there is is used');
like(told("\"num_gpus\": 3, $GBM", "SET ag_pg.gpu_fallback = 'error'; "), qr/ERROR:  not all GPUs that were asked for can be used: 3 GPUs.*failed/s, 'or an error');
like(told("\"num_gpus\": 3, $GBM", "SET ag_pg.gpu_fallback = 'wait'; "), qr/ERROR:  not all GPUs.*failed/s, 'no waiting for what never comes');
like(told("\"num_gpus\": 1, \"ag_args_fit\": {\"num_gpus\": 2}, $GBM"), qr/ERROR:  model "GBM" asks for 2 GPUs, but the whole fit has 1\nHINT:/, 'a model over the total');
like(told("\"num_gpus\": 1, $GBM", 'SET ag_pg.num_gpus = 0; '), qr/WARNING:  no GPU can be used, so the models are fitted on the CPU: the setting ag_pg.num_gpus is 0\nHINT:/, 'ag_pg.num_gpus = 0');
like(told("\"num_gpus\": 2, $GBM", 'SET ag_pg.num_gpus = 1; '), qr/WARNING:  .* and 1 can be used \(ag_pg.num_gpus\)\n.*Uses 1 of GPU cuda:0/s, 'ag_pg.num_gpus = 1');

# --- families
my $lr = told("\"num_gpus\": 1, \"hyperparameters\": {\"LR\": {}, \"KNN\": {}}, $PART");
like($lr, qr/Uses 1 of GPU cuda:0.*Fitting LR with 'num_gpus': 1, .*Fitting KNN with 'num_gpus': 1, /s, 'LR and KNN are for GPUs, too');
unlike($lr, qr/WARNING|No GPU path/, 'without a complaint');
my $fp16 = told('"hyperparameters": {"AG_ARGS_FIT":{"use_fp16":true},"GBM":{"ag_args_fit":{"num_gpus":1}}}');
is(scalar(() = $fp16 =~ /"use_fp16" means nothing to GBM/g), 1, 'use_fp16 for trees says so once');
like($fp16, qr/Uses 1 of GPU cuda:0/, 'and asks on for the GPU');
my $NET = '{"num_epochs": 1, "batch_size": 64, "layers": [16, 16]%s}';
$fp16 = told('"ag_args_fit": {"use_fp16": true}, "hyperparameters": {"GBM": {"num_boost_round": 5}, "LR": {}, "NN_TORCH": ' . sprintf($NET, '') . '}');
is(scalar(() = $fp16 =~ /"use_fp16" means nothing to GBM and LR:/g), 1, 'of trees and linear models it means nothing');
is(scalar(() = $fp16 =~ /"use_fp16" changes nothing for NN_TORCH: half precision takes a GPU/g), 1, 'and of nets without a GPU');
like(told('"hyperparameters": {"GBM": {"num_boost_round": 5}, "NN_TORCH": ' . sprintf($NET, ', "ag_args_fit": {"use_fp16": false}') . '}, "ag_args_fit": {"use_fp16": true}'), qr/\A(?!.*changes nothing).*means nothing to GBM:/s, 'a model\'s own wins');
like(told("\"hyperparameters\": {\"CAT\": {\"iterations\": 5}, \"GBM\": {\"num_boost_round\": 5}}, \"num_gpus\": 1"), qr/WARNING:  not all GPUs .*: the CUDA module has no code to train CAT\n.*Uses 1/s, 'a module that lacks a family');
my $lacks = told('"hyperparameters": {"CAT": {"iterations": 5}, "GBM": {"num_boost_round": 5}}, "num_gpus": "auto"');
is(scalar(() = $lacks =~ /No GPU path in the CUDA module for CAT: fitted on the CPU/g), 1, 'is told of once where nobody insists');
unlike($lacks, qr/WARNING/, 'and is no fault then');

# --- a job
is($node->safe_psql('postgres', "SELECT ag_fit_async('small', 'y', '{\"name\": \"job\", \"num_gpus\": 1, $GBM}')"), 1, 'a job');
is($node->safe_psql('postgres', 'SELECT ag_wait(1, 60)'), 'succeeded', 'that succeeds');
like($node->safe_psql('postgres', 'SELECT ag_job_log(1)'), qr/Uses 1 of GPU cuda:0/, 'on a GPU, too');

# --- fits beside each other; each has a CPU, so there may be two of them
my $slow = '"ag_args_fit": {"num_gpus": %s, "early_stop": null}, "num_cpus": 1, "verbosity": 3';
sub slow_on { my ($name, $gpus) = @_; return start_fit($node, slow_fit("\"name\": \"$name\", " . sprintf($slow, $gpus)) =~ s/"ag_args_fit": \{"early_stop": null\}, //r); }
sub set { $node->safe_psql('postgres', "LOAD 'ag_pg';" . join '', map { "ALTER SYSTEM SET $_;" } @_); $node->reload; return; }
my $whole = "\"ag_args_fit\": {\"num_gpus\": 1}, $GBM";
SKIP:
{
	skip 'one CPU', 14 if `nproc` < 2;
	my $one = slow_on('slow_one', 1);
	ok(wait_leased(0, 60), 'a whole GPU is 60 shares');
	like(told($whole), qr/Uses 1 of GPU cuda:1 /, 'another fit gets the other one');
	like(told("\"num_gpus\": 2, $GBM"), qr/WARNING:  not all GPUs that were asked for can be used: other fits hold all but 1 of the 2 asked for\n.*Uses 1 of GPU cuda:1 /s, 'or half of what it asks for');
	cancel('slow_one');
	end_fit($one);
	set('ag_pg.num_gpus = 1');
	$one = slow_on('slow_half', 0.5);
	ok(wait_leased(0, 30), 'half a GPU is 30 shares');
	like(told($whole), qr/WARNING:  no GPU can be used, so the models are fitted on the CPU: other fits hold the GPUs\nHINT:.*"wait".*'num_gpus': 0,.*stored quick/s, 'warn: a fit for which too little is left runs on the CPU');
	like(told($whole, "SET ag_pg.gpu_fallback = 'error'; "), qr/ERROR:  no GPU can be used: other fits hold the GPUs\nHINT:.*failed/s, 'error: it fails');
	like(told("\"time_limit\": 1, $whole", "SET ag_pg.gpu_fallback = 'wait'; "),
		qr/NOTICE:  waiting for a GPU \(ag_pg.num_gpus\).*ERROR:  the time limit of 1 s passed while waiting [\d.]+ s for a GPU \(ag_pg.num_gpus\)\nHINT:.*ag_pg.gpu_fallback/s,
		'wait: it waits as long as its time limit lets it');
	like(told("\"ag_args_fit\": {\"num_gpus\": 0.5}, $GBM", "SET ag_pg.gpu_fallback = 'wait'; "), qr/\A(?!.*waiting).*Uses 0.5 of GPU cuda:0/s, 'the other half is shared out');
	like(told("\"num_gpus\": \"auto\", $GBM"), qr/\A(?!.*WARNING)/s, '"auto" is content with none');
	is(leased(0) . ' ' . leased(1), '30 0', 'and each fit has given its shares back');
	my $waiting = start_fit($node, "SET ag_pg.gpu_fallback = 'wait'; SELECT ag_fit('small', 'y', '{\"name\": \"patient\", $whole}')");
	ok(wait_until(20, sub { eval { $waiting->{run}->pump_nb }; return $waiting->{err} =~ /waiting for a GPU/; }), 'a fit that waits');
	cancel('slow_half');
	end_fit($one);
	end_fit($waiting);
	like($waiting->{err}, qr/Uses 1 of GPU cuda:0/, 'gets the GPU when the one before is cancelled');
	like($waiting->{out}, qr/^patient$/m, 'and is stored');

	# the trainer killed: the lease goes with it
	$one = slow_on('slow_killed', 1);
	wait_leased(0, 60);
	kill 'KILL', $_ for trainers(supervisors($node));
	end_fit($one);
	nothing_left($node, 'a killed trainer');
	set('ag_pg.num_gpus = -1');
}

# --- the GPU doesn't open
module('BROKEN');
like(told($whole), qr/WARNING:  no GPU can be used, so the models are fitted on the CPU: GPU cuda:0 \(Fake 0\) could not be opened: it is out of order\nHINT:.*stored quick/s, 'a GPU that can not be opened');
like(told($whole, "SET ag_pg.gpu_fallback = 'error'; "), qr/ERROR:  no GPU can be used: GPU cuda:0 .*failed/s, 'or an error');
module('FAMILIES=""');
like(told($whole), qr/WARNING:  no GPU can be used.*: the CUDA module has no code to train GBM\n/, 'a module that trains nothing');

# --- why there is none: what the module found, unless the loader knows better
my @asked = ("\"hyperparameters\": {\"GBM\": {\"num_boost_round\": 5, \"ag_args_fit\": {\"num_gpus\": 1}}}");
module('REASON="no NVIDIA driver was found"', 'DRIVER=0');
SKIP:
{
	skip 'this machine has a libcuda.so.1', 1 if `/sbin/ldconfig -p 2>/dev/null` =~ /libcuda\.so\.1/;
	like(told(@asked), qr/WARNING:  no GPU can be used, so the models are fitted on the CPU: no NVIDIA driver was found\nHINT:  Cure it\.\n/, 'no driver');
}
open my $broken, '>', "$home/libcuda.so.1" or die;
print $broken "not a library, though long enough to have had a header of one" x 3;
close $broken;
like(told(@asked), qr/WARNING:  no GPU can be used.*: the NVIDIA driver's library libcuda.so.1 is there but can't be loaded: \Q$home\E\/libcuda.so.1: .*\nHINT:.*LD_LIBRARY_PATH/, 'a driver that can not be loaded');
module('REASON="the driver serves CUDA 11.4, but ag_pg_cuda.so was built with CUDA 13.0"', 'DRIVER=11040');
like(told(@asked), qr/WARNING:  no GPU can be used.*: the driver serves CUDA 11.4, but .* 13.0\nHINT:  Cure it\.\n/, 'a driver that is too old');
unlink "$home/libcuda.so.1";
unlink "$home/ag_pg_cuda.so";
like(told(@asked), qr/WARNING:  no GPU can be used.*: the CUDA module ag_pg_cuda.so is not installed\nHINT:.*nvcc.*ag_doctor/, 'no module');
open my $rubbish, '>', "$home/ag_pg_cuda.so" or die;
print $rubbish 'rubbish';
close $rubbish;
like(told(@asked), qr/WARNING:  no GPU can be used.*: the CUDA module could not be loaded: .*(invalid ELF header|file too short)\nHINT:/, 'a broken module');
module('FOREIGN');
like(told(@asked), qr/WARNING:  no GPU can be used.*: the CUDA module ag_pg_cuda.so belongs to another build of ag_pg\nHINT:/, 'a module of another build');
like(told(@asked, "SET ag_pg.gpu_fallback = 'error'; "), qr/ERROR:  no GPU can be used: the CUDA module .*failed/s, 'an error where that is wanted');

# --- a whole bag of everything, asked as people ask; cancelled
module();
$node->safe_psql('postgres', 'CREATE TABLE few AS SELECT * FROM big LIMIT 2000');
my $best = start_fit($node, q{SELECT ag_fit('few', 'y', '{"presets":"best_quality","verbosity":4,"time_limit":70000,"ag_args_fit":{"num_gpus":1}}')});
ok(wait_until(60, sub { eval { $best->{run}->pump_nb }; return $best->{err} =~ /Models are bags of 8 folds/; }), 'best_quality with a GPU for each training begins');
like($best->{err}, qr/Uses 1 of GPU cuda:0 /, 'and what it has');
cancel('best_quality');
end_fit($best);
like($best->{err}, qr/ERROR:.*canceling statement due to user request/, 'it can be cancelled');
nothing_left($node, 'best_quality');
like(told('"hyperparameters":{"GBM":{"ag_args_fit":{"num_gpus":1}}}'), qr/Uses 1 of GPU cuda:0.*stored quick/s, 'a GPU for one family');

# --- the kernels themselves, on two GPUs that are simulated: what ran where, and the same bytes as on the CPU
SKIP:
{
	skip 'there is no C++ compiler (c++)', 18 if system('c++ --version >/dev/null 2>&1') != 0;
	unlink "$home/ag_pg_cuda.so";
	is(system("c++ -std=c++17 -O1 -shared -fPIC -fvisibility=hidden -Itest/cuda_sim -Itest -I. -Isrc -DAGK_ARCHITECTURES='\"sm_90\"' -o $home/ag_pg_cuda.so -x c++ kernels/*.cu test/cuda_sim/lib/two_gpus.cc test/cuda_sim/lib/simt.cc"), 0, 'the module of simulated GPUs');
	my $models = '"retrain_full": false, "hyperparameters": {"GBM": [{"num_boost_round": 5}, {"num_boost_round": 6, "num_leaves": 7}], "LR": {"max_iter": 5}, "KNN": {}, "RF": {"n_estimators": 3, "max_depth": 4}}, "verbosity": 2';
	my $there = told("\"num_gpus\": 2, $models");
	like($there, qr/Uses 1 of GPU cuda:0 .*Uses 1 of GPU cuda:1 .*stored quick/s, 'a fit on two GPUs');
	unlike($there, qr/WARNING/, 'without a complaint');
	is($node->safe_psql('postgres', q{SELECT string_agg(concat_ws(' ', model, device, num_gpus), ', ' ORDER BY model) FROM ag_leaderboard('quick') WHERE model !~ 'Ensemble'}),
		'GBM cuda:0 1, GBM_2 cuda:0 1, KNN cuda:1 1, LR cuda:1 1, RF cuda:0 1', 'the leaderboard shows where each model ran');
	like(told("\"num_gpus\": 0, $models"), qr/stored quick/, 'the same on the CPU');
	is($node->safe_psql('postgres', q{SELECT count(*) || ' of ' || count(DISTINCT md5) FROM (SELECT md5(p.data), a.version FROM ag_member_part AS p JOIN ag_predictor AS a ON a.id = p.predictor
		JOIN ag_member AS m ON m.predictor = p.predictor AND m.ordinal = p.member
		WHERE a.name = 'quick' AND m.name IN ('GBM', 'GBM_2', 'LR', 'KNN', 'RF') AND a.version > (SELECT max(version) - 2 FROM ag_predictor WHERE name = 'quick')) AS part}), '10 of 5', 'gives the same bytes');
	my $here = told('"num_gpus": 1, "verbosity": 2, "hyperparameters": {"CAT": {"iterations": 3, "boosting_type": "Ordered"}, "GBM": {"num_boost_round": 3, "data_sample_strategy": "goss"}}');
	like($here, qr/NOTICE:  model CAT was trained on the CPU: ordered boosting is done on the CPU only/, 'parameters for the CPU are told, and no fault');
	like($here, qr/NOTICE:  model GBM was trained on the CPU: rows are drawn by their gradients \(goss\) on the CPU only/, 'each with its own reason');
	is($node->safe_psql('postgres', q{SELECT string_agg(concat_ws(' ', model, device, num_gpus), ', ' ORDER BY model) FROM ag_leaderboard('quick') WHERE model !~ 'Ensemble'}), 'CAT cpu 0, GBM cpu 0', 'and the leaderboard knows');
	my $net = '"verbosity": 2, "hyperparameters": {"NN_TORCH": ' . sprintf($NET, '') . '}';
	told("\"num_gpus\": $_, $net") for 1, 0;
	is($node->safe_psql('postgres', q{SELECT string_agg(concat_ws(' ', device, num_gpus), ', ' ORDER BY v DESC) FROM generate_series(0, 1) AS v,
		LATERAL ag_leaderboard('quick@' || (SELECT max(version) - v FROM ag_predictor WHERE name = 'quick')) WHERE model = 'NN_TORCH'}), 'cuda:0 1, cpu 0', 'a net on a GPU');
	is($node->safe_psql('postgres', q{SELECT count(*) || ' of ' || count(DISTINCT md5) FROM (SELECT md5(p.data) FROM ag_member_part AS p JOIN ag_predictor AS a ON a.id = p.predictor
		WHERE a.name = 'quick' AND member = 1 AND a.version > (SELECT max(version) - 2 FROM ag_predictor WHERE name = 'quick')) AS part}), '2 of 1', 'with the bytes of the CPU');
	my $half = told('"num_gpus": 1, "verbosity": 3, "hyperparameters": {"AG_ARGS_FIT": {"use_fp16": true}, "NN_TORCH": ' . sprintf($NET, '') . '}');
	like($half, qr/Takes \d+\.\d\d MB of cuda:0, with products in half \(bfloat16\) precision; /, 'use_fp16 of a net on a GPU, and its memory');
	unlike($half, qr/changes nothing|means nothing|can't be had/, 'is had');
	is($node->safe_psql('postgres', q{SELECT count(DISTINCT md5) FROM (SELECT md5(p.data) FROM ag_member_part AS p JOIN ag_predictor AS a ON a.id = p.predictor
		WHERE a.name = 'quick' AND member = 1 AND a.version > (SELECT max(version) - 2 FROM ag_predictor WHERE name = 'quick')) AS part}), '2', 'and shows in the bytes');
	my $bag = told('"num_gpus": 1, "num_bag_folds": 3, "ag_args_ensemble": {"fold_fitting_strategy": "sequential_local"}, "hyperparameters": {"GBM": {"num_boost_round": 5}}');
	is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT concat_ws(' ', device, num_gpus), ', ') FROM ag_leaderboard('quick') WHERE model = 'GBM_BAG_L1'}), 'cuda:0 1', 'a bag on a GPU')
	  or diag($bag);
	like(told("\"num_gpus\": 1, $GBM"), qr/Fitting GBM with 'num_gpus': 1, .*Needs \d+\.\d\d MB of cuda:0 beside \d+\.\d\d MB of bins; \d+\.\d\d MB of this training's share are free\n/s, 'the memory that a training needs is told of before');

	# seconds on GPUs are counted, where the library is preloaded: here all that is called must be of the copy
	$node->safe_psql('postgres', q{UPDATE pg_proc SET probin = 'ag_pg' WHERE probin = '$libdir/ag_pg'});
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'ag_pg'");
	$node->restart;
	told('"num_gpus": 0, "hyperparameters": {"GBM": {"num_boost_round": 5}}');
	is($node->safe_psql('postgres', 'SELECT fits > 0, gpu_time FROM ag_stats'), 't|0', 'ag_stats: none on the CPU');
	told('"num_gpus": 1, "hyperparameters": {"GBM": {"num_boost_round": 5}}');
	is($node->safe_psql('postgres', 'SELECT gpu_time > 0 FROM ag_stats'), 't', 'ag_stats: some on a GPU');
}
$node->stop;
done_testing();
