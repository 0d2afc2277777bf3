# When the trainer dies or misbehaves only the call fails; when a process of the server is killed the cluster restarts as it always
# does, and nothing of the fit outlives it.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('kill');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nrestart_after_crash = on\n");
$node->start;
make_data($node);
my $boot = boot_time($node);
my $bystander = start_fit($node, 'SELECT pg_sleep(300)');

for my $case ([ 'KILL', 9, qr/HINT:  The system may have run out of memory/ ], [ 'SEGV', 11, qr/HINT/ ], [ 'ABRT', 6, qr/HINT/ ])
{
	my ($signal, $number, $hint) = @$case;
	my $fit = start_fit($node, slow_fit());
	my ($supervisor, $trainer) = wait_for_training($node);
	kill $signal, $trainer;
	cmp_ok(end_fit($fit), '<', 1.5, "SIG$signal to the trainer: the call ends");
	like($fit->{err}, qr/ERROR:  58000: the program ag_trainer was killed by signal $number/, "SIG$signal to the trainer: an error says so");
	like($fit->{err}, $hint, "SIG$signal to the trainer: with a hint");
	nothing_left($node, "SIG$signal to the trainer", $supervisor, $trainer);
}
is(boot_time($node), $boot, 'the server never restarted');
ok(!is_gone($bystander->{pid}), 'another session went on');
like($node->safe_psql('postgres', "SELECT ag_fit('small', 'y', '" . quick_options() . "')"), qr/small_y/, 'and the next fit works');

# a trainer that stands still is cancelled and killed all the same
my $fit = start_fit($node, slow_fit());
my ($supervisor, $trainer) = wait_for_training($node);
kill 'STOP', $trainer;
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT ag_fit%' AND backend_type = 'client backend'});
cmp_ok(end_fit($fit), '<', 1.5, 'a stopped trainer: the call ends');
nothing_left($node, 'a stopped trainer', $supervisor, $trainer);
kill 'KILL', $bystander->{pid};
end_fit($bystander);

# kill -9 of the server's own processes: a restart, and no orphan
for my $who ('supervisor', 'session')
{
	$fit = start_fit($node, slow_fit());
	($supervisor, $trainer) = wait_for_training($node);
	my $session = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT ag_fit%' AND backend_type = 'client backend'});
	kill 'KILL', $who eq 'session' ? $session : $supervisor;
	end_fit($fit);
	ok(wait_until(5, sub { is_gone($trainer) && is_gone($supervisor) }), "kill -9 of the $who: nothing lives on");
	ok($node->poll_query_until('postgres', 'SELECT true'), "kill -9 of the $who: the server is back");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM ag_predictor WHERE name = 'big_y'}), '0', "kill -9 of the $who: no half predictor");
	like($node->safe_psql('postgres', "SELECT ag_fit('small', 'y', '" . quick_options() . "')"), qr/small_y/, "kill -9 of the $who: the next fit works");
}
$node->stop;

# Programs that are no trainer of ours, beside a copy of the library that only the supervisor loads.
my $bin = PostgreSQL::Test::Utils::tempdir;
chomp(my $lib = `$ENV{PG_CONFIG} --pkglibdir`);
system('cp', "$lib/ag_pg.so", "$bin/ag_pg.so") == 0 or die 'cp';
$node->append_conf('postgresql.conf', "dynamic_library_path = '$bin:\$libdir'\n");
$node->start;

sub with_trainer
{
	my ($name, $script, $expected, $time_limit) = @_;
	$time_limit //= 10;
	my ($err, $log) = ('', -s $node->logfile);
	unlink "$bin/ag_trainer";
	if (defined $script)
	{
		append_to_file("$bin/ag_trainer", $script);
		chmod 0755, "$bin/ag_trainer";
	}
	$node->psql('postgres', "SELECT ag_fit('small', 'y', '{\"time_limit\": $time_limit}')", stderr => \$err);
	like($err, $expected, "$name: an error says so");
	nothing_left($node, $name);
	return slurp_file($node->logfile, $log);
}
my $frame = q{#!/usr/bin/perl
open my $out, '>&=', 3; $| = 1;
sub frame { my ($type, $bytes) = @_; syswrite $out, pack('VvvVV', 0x31464741, $type, 0, length $bytes, 0) . $bytes; }
};
with_trainer('no trainer', undef, qr/could not start ".*ag_trainer": No such file or directory\nHINT/);
with_trainer('a program that exits', "#!/bin/sh\nexit 3\n", qr/the program ag_trainer exited with code 3/);
like(with_trainer('a program that writes to standard error', "#!/bin/sh\necho out of luck >&2\nexit 1\n", qr/exited with code 1/),
	qr/LOG:  ag_trainer: out of luck/, 'standard error goes to the server log');
with_trainer('garbage', "#!/bin/sh\nhead -c 1000 /dev/zero >&3\nsleep 60\n", qr/ERROR:.*frame/);
with_trainer('frames before hello', $frame . q{frame(17, 'x'); sleep 60;}, qr/the trainer does not keep to the protocol/);
with_trainer('another build', $frame . q{frame(1, pack('VV/a*', 1, '0.0.9+other')); sleep 60;}, qr/ag_trainer is of build 0.0.9\+other.*\nHINT:  Install both/);
with_trainer('a hello that is none', $frame . q{frame(1, 'xxxxxxxxxxxxxxxxxx'); sleep 60;}, qr/ERROR/);
with_trainer('a huge frame', $frame . q{syswrite $out, pack('VvvVV', 0x31464741, 16, 0, 0xfffffff0, 0); sleep 60;}, qr/ERROR/);

# one of our build, that then does what it shouldn't
my $build = `$lib/ag_trainer --version`;
$build =~ s/^ag_trainer |\s+$//g;
my $hello = $frame . "frame(1, pack('VV/a*', 1, '$build'));\n";
with_trainer('death after hello', $hello . q{kill 'KILL', $$;}, qr/was killed by signal 9/);
with_trainer('the end after hello', $hello . q{exit 0;}, qr/ag_trainer exited with code 0/);
with_trainer('death in the middle of a frame', $hello . q{syswrite $out, pack('VvvVV', 0x31464741, 16, 0, 1000, 0) . 'abc'; kill 'KILL', $$;},
	qr/was killed by signal 9/);
with_trainer('a log message of garbage', $hello . q{frame(16, "\xff" x 50); sleep 60;}, qr/ERROR/);
with_trainer('done without a predictor', $hello . q{frame(23, pack('q<dq<q<', 1, 1.0, 0, 0)); sleep 60;}, qr/the trainer ended without a predictor|ERROR/);
with_trainer('a frame that is not the trainer\'s to send', $hello . q{frame(3, 'xxxx'); sleep 60;}, qr/unexpected frame of type 3/);
with_trainer('a trainer that says nothing more', $hello . q{sleep 60;}, qr/the trainer did not keep to the time limit of 1 s/, 1);
with_trainer('more memory than there is', $hello . q{frame(18, pack('q<l<4CL<', 1 << 50, 1, 0, 0, 0, 0, 0)); sleep 60;},
	qr/the fit needs about 1125899.91 GB of memory and may use .* GB\nHINT/);
is($node->safe_psql('postgres', q{SELECT count(*) FROM ag_predictor WHERE name = 'big_y'}), '0', 'nothing was stored');
$node->stop;
done_testing();
