# AgFit.pm - what the tests of running fits share: a fit that trains for minutes, in the background, and what one leaves behind.
package AgFit;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run ();
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(make_data make_big slow_fit start_fit wait_for_training end_fit trainers supervisors nothing_left is_gone boot_time quick_options
  wait_until);

# Boosts a million tiny rounds, however little each of them is better than the one before.
my $SLOW = '"hyperparameters": {"GBM": {"num_boost_round": 1000000, "learning_rate": 0.00001, "num_leaves": 4}}, "ag_args_fit": {"early_stop": null}';

sub quick_options
{
	my ($more) = @_;
	return '{"hyperparameters": {"GBM": {"num_boost_round": 20}}, "verbosity": 1' . ($more ? ", $more" : '') . '}';
}

sub make_data
{
	my ($node) = @_;
	$node->safe_psql('postgres', 'CREATE EXTENSION ag_pg');
	make_big($node);
	$node->safe_psql('postgres', q{
		CREATE TABLE small AS SELECT i % 50 AS x, (i % 50) * 2.0 AS y FROM generate_series(1, 300) AS i;});
	return;
}

sub make_big
{
	my ($node) = @_;
	$node->safe_psql('postgres',
		q{CREATE TABLE big AS SELECT i AS a, sin(i / 100.0) AS b, (i % 7)::text AS c, i % 50 + sin(i / 1000.0) AS y FROM generate_series(1, 20000) AS i});
	return;
}

sub slow_fit
{
	my ($more) = @_;
	return "SELECT ag_fit('big', 'y', '{$SLOW, \"time_limit\": 300" . ($more ? ", $more" : '') . "}')";
}

# A psql in the background: {run}, {out}, {err}, {pid}.
sub start_fit
{
	my ($node, $sql) = @_;
	my %fit = (out => '', err => '', began => time);
	$fit{run} = IPC::Run::start(
		[ 'psql', '-X', '-qAt', '-v', 'VERBOSITY=verbose', '-d', $node->connstr('postgres'), '-c', $sql ],
		'<', \undef, '>', \$fit{out}, '2>', \$fit{err});
	$fit{pid} = $fit{run}->{KIDS}[0]{PID};
	return \%fit;
}

sub wait_until
{
	my ($seconds, $what) = @_;
	my $end = time + $seconds;
	while (time < $end)
	{
		return 1 if $what->();
		sleep 0.05;
	}
	return $what->();
}

sub supervisors
{
	my ($node) = @_;
	return split /\n/, $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'ag_pg supervisor'});
}

# Trainers that are children of the given processes.
sub trainers
{
	my %parent = map { $_ => 1 } @_;
	my @found;
	for my $stat (glob '/proc/[0-9]*/stat')
	{
		open my $file, '<', $stat or next;
		my $line = <$file> // next;
		close $file;
		push @found, $1 if $line =~ /^(\d+) \(ag_trainer\) \S (\d+)/ && $parent{$2};
	}
	return @found;
}

# The training of a fit started before has begun: (supervisor, trainer).
sub wait_for_training
{
	my ($node) = @_;
	my ($supervisor, $trainer);
	wait_until(30, sub {
		($supervisor) = supervisors($node);
		return 0 unless $supervisor;
		($trainer) = trainers($supervisor);
		return $trainer && $node->safe_psql('postgres', q{SELECT count(*) > 1 FROM pg_locks WHERE locktype = 'advisory' AND database = 0}) eq 't';
	}) or die 'the fit did not begin to train';
	return ($supervisor, $trainer);
}

# Waits for the end of a fit's psql; how many seconds that took.
sub end_fit
{
	my ($fit) = @_;
	my $began = time;
	eval { $fit->{run}->finish };
	return time - $began;
}

# A process is gone, or a corpse that waits for its parent.
sub is_gone
{
	my ($pid) = @_;
	open my $file, '<', "/proc/$pid/stat" or return 1;
	my $line = <$file> // return 1;
	return $line =~ /^\d+ \(.*\) [ZX] /;
}

# Within a second: no supervisor, no trainer, no lock, no segment more than before.
sub nothing_left
{
	my ($node, $name, @pids) = @_;
	my $clean = wait_until(1.5, sub {
		return !(grep { !is_gone($_) } @pids) && !supervisors($node) &&
		  $node->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}) eq '0';
	});
	ok($clean, "$name: nothing left behind");
	return;
}

# Changes when the cluster restarts.
sub boot_time
{
	my ($node) = @_;
	return $node->safe_psql('postgres', q{SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
}

1;
