# A fit can be stopped in every way a statement can, within a second, and leaves nothing behind.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = PostgreSQL::Test::Cluster->new('cancel');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\n");
$node->start;
make_data($node);
my $boot = boot_time($node);

# Starts a fit, stops it by $stop->(session's pid, supervisor, psql's pid), looks at what it said.
sub stopped
{
	my ($name, $sql, $stop, $expected) = @_;
	my $fit = start_fit($node, $sql);
	my ($supervisor, $trainer) = wait_for_training($node);
	my $session = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE query LIKE '%ag_fit(%' AND pid <> pg_backend_pid() AND state = 'active' LIMIT 1});
	$stop->($session, $supervisor, $fit);
	my $seconds = end_fit($fit);
	cmp_ok($seconds, '<', 1.5, "$name: within a second");
	like($fit->{err}, $expected, "$name: says so") if $expected;
	nothing_left($node, $name, $supervisor, $trainer);
	return;
}

stopped('pg_cancel_backend', slow_fit(), sub { $node->safe_psql('postgres', "SELECT pg_cancel_backend($_[0])") },
	qr/ERROR:  57014: canceling statement due to user request/);
stopped('pg_terminate_backend', slow_fit(), sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") },
	qr/FATAL:  57P01/);
stopped('a lost client', slow_fit('"verbosity": 0'), sub { kill 'KILL', $_[2]->{pid} }, undef);
stopped('the end of the supervisor', slow_fit(), sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend($_[1])") },
	qr/ERROR:  57000: the fit's background worker ended unexpectedly/);
stopped('a cancel of the supervisor', slow_fit(), sub { $node->safe_psql('postgres', "SELECT pg_cancel_backend($_[1])") },
	qr/ERROR:  57014: canceling statement/);

# timeouts
my ($out, $err, $began) = ('', '', time);
$node->psql('postgres', "SET statement_timeout = '1500ms'; " . slow_fit(), stdout => \$out, stderr => \$err);
like($err, qr/canceling statement due to statement timeout/, 'statement_timeout');
cmp_ok(time - $began, '<', 3.5, 'statement_timeout: in time');
nothing_left($node, 'statement_timeout');

# while rows are read, whether they come or not
for my $case ([ 'a query that gives rows slowly', 'SELECT a, y, pg_sleep(0.02)::text AS z FROM big' ],
	[ 'a query that gives no row', 'SELECT a, y FROM big, (SELECT pg_sleep(60)) AS s OFFSET 0' ])
{
	my ($name, $query) = @$case;
	my $fit = start_fit($node, "SELECT ag_fit('$query', 'y', '{\"name\": \"never\"}')");
	wait_until(10, sub { supervisors($node) });
	my ($supervisor) = supervisors($node);
	my @trainers = trainers($supervisor);
	$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT ag_fit%' AND backend_type = 'client backend'});
	cmp_ok(end_fit($fit), '<', 1.5, "cancel during $name: within a second");
	like($fit->{err}, qr/57014: canceling statement due to user request/, "cancel during $name: says so");
	nothing_left($node, "cancel during $name", $supervisor, @trainers);

	$began = time;
	$node->psql('postgres', "SELECT ag_fit('$query', 'y', '{\"name\": \"never\", \"time_limit\": 1}')", stderr => \$err);
	like($err, qr/the time limit of 1 s passed while the rows were being read/, "time limit during $name: says so");
	cmp_ok(time - $began, '<', 2.5, "time limit during $name: in time");
	nothing_left($node, "time limit during $name");
}

# while a model of another program is read: the end of its text, which is none, is never reached
$node->safe_psql('postgres', q~CREATE TABLE model AS SELECT '{"learner":{"feature_names":["a","b"],"gradient_booster":{"name":"gbtree","model":{"tree_info":[' || repeat('0,', 299999) || '0],"trees":['
	|| repeat('{"left_children":[-1],"right_children":[-1],"split_indices":[0],"split_conditions":[1.5],"default_left":[0]},', 300000) || 'no tree' AS text~);
$node->psql('postgres', q{SELECT ag_import('m', text, 'xgboost_json') FROM model}, stderr => \$err);
like($err, qr/the model is no "xgboost_json"/, 'a long model with a fault at its end');
$node->psql('postgres', q{SELECT ag_version(), length(text) FROM model \gset
	SET statement_timeout = 60; SELECT ag_import('m', text, 'xgboost_json') FROM model}, stderr => \$err);
like($err, qr/canceling statement due to statement timeout/, 'a cancel while it is read: before its end');
$node->psql('postgres', q~LOAD 'ag_pg'; SET ag_pg.memory_limit = '64MB'; SELECT ag_import('m', '{"learner":{"feature_names":["' || repeat('x', 70000000) || '"]', 'xgboost_json')~, stderr => \$err);
like($err, qr/ERROR:  out of memory\nDETAIL:.*limit is 64 MB/, 'and no more memory than fits may use');

# a cancel that is caught leaves a transaction that goes on
$node->psql('postgres', q{
	BEGIN;
	CREATE TABLE kept AS SELECT 1 AS one;
	SET LOCAL statement_timeout = '1s';
	DO $$ BEGIN PERFORM ag_fit('SELECT a, y, pg_sleep(0.01)::text AS z FROM big', 'y', '{"name": "never"}');
	EXCEPTION WHEN query_canceled THEN RAISE NOTICE 'caught'; END $$;
	SET LOCAL statement_timeout = 0;
	INSERT INTO kept SELECT 2;
	SELECT ag_fit('small', 'y', '} . quick_options() . q{');
	COMMIT;}, stdout => \$out, stderr => \$err, on_error_stop => 1);
like($err, qr/caught/, 'a cancel can be caught');
is($node->safe_psql('postgres', 'SELECT count(*) FROM kept'), '2', 'and the transaction goes on');
is($node->safe_psql('postgres', q{SELECT string_agg(name, ' ') FROM ag_predictor}), 'small_y', 'nothing was stored but what ended well');

# sixty fits stopped at any moment
my $bad = 0;
for my $i (1 .. 60)
{
	my $ms = 3 + $i * 6;
	my $rc = $node->psql('postgres', "SET statement_timeout = $ms; " . slow_fit(), stderr => \$err);
	$bad++ unless $rc == 3 && $err =~ /statement timeout/;
}
is($bad, 0, 'sixty fits stopped at any moment');
nothing_left($node, 'sixty stopped fits');
is(boot_time($node), $boot, 'the server never restarted');
is(scalar(grep { /PANIC|TRAP|leak/ } split /\n/, slurp_file($node->logfile)), 0, 'nothing odd in the log');
$node->stop;
done_testing();
