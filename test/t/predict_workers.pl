# ag_predict_table by several processes: the rows of one, in their order; where they can't be, one does it; errors, cancels and ends of workers.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('workers');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nmax_worker_processes = 12\nmax_parallel_workers = 8\nautovacuum = off\n");
$node->start;
if ($node->safe_psql('postgres', q{SELECT current_setting('server_version_num')::int < 140000}) eq 't')
{
	plan skip_all => 'PostgreSQL 13 reads no ranges of blocks';
}
make_data($node);
$node->safe_psql('postgres', q{
	CREATE TYPE shade AS ENUM ('red', 'green', 'blue');
	CREATE TABLE t (id bigint, gone int, x float8, k text, n numeric(8, 2), d date, b bool, s shade, long text);
	INSERT INTO t SELECT i, 0, CASE WHEN i % 11 > 0 THEN sin(i / 50.0) END, CASE WHEN i % 7 > 0 THEN 'k' || i % 40 END, (i % 333) / 7.0, date '2026-01-01' + i % 365, i % 3 = 0,
		(ARRAY['red', 'green', 'blue'])[1 + i % 3]::shade, CASE WHEN i % 400 = 0 THEN repeat(i::text, 4000) ELSE i::text END FROM generate_series(1, 30000) AS i;
	ALTER TABLE t DROP COLUMN gone;
	ALTER TABLE t ADD COLUMN later int DEFAULT 7;
	DELETE FROM t WHERE id % 17 = 0;
	UPDATE t SET n = n + 1 WHERE id % 23 = 0;
	ANALYZE t;
	CREATE TYPE odd;
	CREATE FUNCTION odd_in(cstring) RETURNS odd LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
	CREATE FUNCTION odd_out(odd) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT PARALLEL UNSAFE AS 'int4out';
	CREATE TYPE odd (INPUT = odd_in, OUTPUT = odd_out, LIKE = int4);
	CREATE TABLE odds AS SELECT t.*, id::text::odd AS o FROM t;
	CREATE FUNCTION predicted(model text, data text, key text DEFAULT 'id') RETURNS text LANGUAGE sql AS
		'SELECT count(*) || '' '' || md5(string_agg(concat_ws(''/'', key, prediction, value, proba, quantiles), '','' ORDER BY o)) FROM ag_predict_table(model, data, key) WITH ORDINALITY AS p(key, prediction, value, proba, quantiles, o)';});
my $x = 'x, k, n, d, b, s, later';
$node->safe_psql('postgres', "SELECT ag_fit('SELECT $x, coalesce(x, 0) * 3 + n AS y FROM t LIMIT 2000', 'y', '" . quick_options('"name": "reg"') . "')");
$node->safe_psql('postgres', "SELECT ag_fit('SELECT $x, k AS y FROM t WHERE k < ''k2'' LIMIT 2000', 'y', '" . quick_options('"name": "cls"') . "')");
$node->safe_psql('postgres', "SELECT ag_fit('SELECT $x, n AS y FROM t LIMIT 2000', 'y', '" . quick_options('"name": "qua", "problem_type": "quantile", "quantile_levels": [0.9, 0.1]') . "')");
$node->safe_psql('postgres', q{SELECT ag_fit('SELECT x, n, n AS y FROM t LIMIT 20000', 'y', '{"name": "slow", "verbosity": 0, "hyperparameters": {"KNN": {"n_neighbors": 500}}}')});

my $serial = 'SET max_parallel_workers_per_gather = 0;';
my $parallel = 'SET parallel_setup_cost = 0; SET max_parallel_workers_per_gather = 3; SET client_min_messages = debug1;';

# What the call gives, and what was said of workers: "launched of asked for", "pool launched of asked for" where the session read the rows, or nothing.
sub called
{
	my ($settings, $call) = @_;
	my ($out, $err) = ('', '');
	$node->psql('postgres', "$settings $call", stdout => \$out, stderr => \$err);
	my ($launched, $asked) = $err =~ /predicting \S+ in \d+ pieces, with (\d+) workers of the (\d+) asked for/;
	my $said = defined $asked ? "$launched of $asked" : '';
	$said .= "pool $1 of $2" if $err =~ /predicting rows of \S.* with (\d+) workers of the (\d+) asked for/;
	return ($out, $said, $err);
}

sub same
{
	my ($name, $call, $workers, $settings) = @_;
	my ($one) = called($serial, $call);
	my ($many, $said, $err) = called($parallel . ($settings // ''), $call);
	is($many, $one, "$name: the same rows");
	isnt($one, '', "$name: there are some");
	is($said, $workers, "$name: workers") or diag($err);
	return;
}

sub none_left
{
	my ($name) = @_;
	ok(wait_until(5, sub { $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'}) eq '0' }), "$name: no worker is left");
	return;
}

same("model $_", "SELECT predicted('$_', 't')", '3 of 3') for qw(reg cls qua);
same('a long key', q{SELECT predicted('reg', 't', 'long')}, '3 of 3');
same('no key', q{SELECT predicted('reg', 't', NULL)}, '3 of 3');
same('a session that only collects', q{SELECT predicted('reg', 't')}, '3 of 3', 'SET parallel_leader_participation = off;');
same('little memory', q{SELECT predicted('cls', 't', 'long')}, '3 of 3', 'SET work_mem = 64;');
same('no TID scans, if the user had it so', q{SELECT predicted('reg', 't')}, '3 of 3', 'SET enable_tidscan = off;');
same('a materialized view', q{CREATE MATERIALIZED VIEW IF NOT EXISTS mv AS SELECT * FROM t; SELECT predicted('reg', 'mv')}, '3 of 3');
same('to another table', q{BEGIN; CREATE TABLE result AS SELECT * FROM ag_predict_table('reg', 't', 'id'); SELECT md5(string_agg(r::text, ',' ORDER BY ctid)) FROM result r; ROLLBACK}, '3 of 3');
same('a table of this transaction', q{BEGIN; CREATE TABLE fresh AS SELECT * FROM t; SELECT predicted('reg', 'fresh'); ROLLBACK}, '3 of 3');
same('REPEATABLE READ', q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT predicted('reg', 't'); COMMIT}, '3 of 3');
# what the transaction changed itself
my ($own, $own_said) = called($parallel, q{BEGIN; INSERT INTO t (id, x) SELECT -i, i FROM generate_series(1, 500) i; SAVEPOINT s; DELETE FROM t WHERE id % 5 = 0; UPDATE t SET x = x + 1 WHERE id % 3 = 0; RELEASE s;
	SAVEPOINT r; DELETE FROM t; ROLLBACK TO r; SELECT predicted('reg', 't'); SET max_parallel_workers_per_gather = 0; SELECT predicted('reg', 't'); SELECT count(*) FROM t; ROLLBACK});
my ($own_many, $own_one, $own_rows) = split /\n/, $own;
is($own_said, '3 of 3', 'own changes: workers');
is($own_many, $own_one, 'own changes: the same rows');
like($own_many, qr/^$own_rows /, 'own changes: all that are there');
my $model = q{SELECT md5(string_agg(value::text, ',' ORDER BY o)) FROM ag_predict_table('new', 't') WITH ORDINALITY AS p(key, prediction, value, proba, quantiles, o)};
($own, $own_said) = called($parallel, qq{BEGIN; SELECT ag_fit('SELECT x, n, n AS y FROM t LIMIT 500', 'y', '{"name": "new", "verbosity": 0, "hyperparameters": {"LR": {}}}') IS NULL; $model; SET max_parallel_workers_per_gather = 0; $model; ROLLBACK});
(undef, $own_many, $own_one) = split /\n/, $own;
is($own_said, '3 of 3', 'a model of this transaction: workers');
is($own_many, $own_one, 'a model of this transaction: the same rows');
same('few blocks', q{CREATE TABLE IF NOT EXISTS few AS SELECT * FROM t LIMIT 100; SELECT predicted('reg', 'few')}, '');
same('an empty table', q{CREATE TABLE IF NOT EXISTS nothing AS SELECT * FROM t LIMIT 0; SELECT count(*) FROM ag_predict_table('reg', 'nothing', 'id')}, '');

# of several tables
$node->safe_psql('postgres', q{
	CREATE TABLE parts (LIKE t) PARTITION BY RANGE (id);
	CREATE TABLE part2 PARTITION OF parts FOR VALUES FROM (20000) TO (25000);
	CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (5000) TO (20000) PARTITION BY LIST (b);
	CREATE TABLE part1t PARTITION OF part1 FOR VALUES IN (true);
	CREATE TABLE part1f (s shade, long text, n numeric(8, 2), old text, later int, d date, x float8, id bigint, b bool, k text);
	ALTER TABLE part1f DROP COLUMN old;
	ALTER TABLE part1 ATTACH PARTITION part1f FOR VALUES IN (false);
	CREATE TABLE none PARTITION OF parts FOR VALUES FROM (-9) TO (0);
	CREATE TABLE rest PARTITION OF parts DEFAULT;
	INSERT INTO parts SELECT * FROM t;
	CREATE TABLE parent (LIKE t);
	CREATE TABLE child (more int, LIKE t);
	ALTER TABLE child INHERIT parent;
	CREATE TABLE child2 () INHERITS (parent);
	INSERT INTO parent SELECT * FROM t WHERE id < 9000; INSERT INTO child SELECT 1, t.* FROM t WHERE id % 2 = 0; INSERT INTO child2 SELECT * FROM t WHERE id % 3 = 0;});
for my $analyzed ('', 'ANALYZE parts; ANALYZE parent; ANALYZE child2;')
{
	$node->safe_psql('postgres', $analyzed);
	my $when = $analyzed eq '' ? '' : ', analyzed';
	same("a partitioned table$when", q{SELECT predicted('cls', 'parts', 'long')}, '3 of 3');
	same("tables that inherit$when", q{SELECT predicted('reg', 'parent')}, '3 of 3');
}
same('one of the partitions', q{SELECT predicted('reg', 'part1')}, '3 of 3');
same('a partition with other columns', q{SELECT predicted('reg', 'part1f')}, '3 of 3');
same('partitions that allow one', q{BEGIN; ALTER TABLE part1f SET (parallel_workers = 1); ALTER TABLE part1t SET (parallel_workers = 0); SELECT predicted('reg', 'part1'); ROLLBACK}, '1 of 1');
same('a partition that goes', q{BEGIN; DROP TABLE part2; SELECT predicted('reg', 'parts'); ROLLBACK}, '3 of 3');
same('partitions, none of a row', q{BEGIN; DELETE FROM parts; SELECT count(*) FROM ag_predict_table('reg', 'parts', 'id'); ROLLBACK}, '3 of 3');

# which the session reads, and others predict
$node->safe_psql('postgres', 'CREATE TABLE little AS SELECT * FROM t LIMIT 1500');
same('a query', q{SELECT predicted('slow', 'SELECT * FROM little')}, 'pool 3 of 3');
same('a query in its order', q{SELECT predicted('slow', 'SELECT * FROM little ORDER BY x, id DESC')}, 'pool 3 of 3');
same("a query for model $_", "SELECT predicted('$_', 'SELECT * FROM t', 'long')", 'pool 1 of 1', 'SET max_parallel_workers_per_gather = 1;') for qw(reg cls qua);
same('a query without key', q{SELECT predicted('slow', 'SELECT * FROM little', NULL)}, 'pool 3 of 3');
same('a query with little memory', q{SELECT predicted('slow', 'SELECT * FROM little', 'long')}, 'pool 3 of 3', 'SET work_mem = 64;');
same('a view', q{CREATE OR REPLACE VIEW v AS SELECT * FROM little; SELECT predicted('slow', 'v')}, 'pool 3 of 3');
same('a temporary table', q{CREATE TEMPORARY TABLE tt AS SELECT * FROM little; SELECT predicted('slow', 'tt')}, 'pool 3 of 3');
same('SERIALIZABLE', q{BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT predicted('slow', 'little'); COMMIT}, 'pool 3 of 3');
same('a temporary child', q{BEGIN; CREATE TEMPORARY TABLE mine () INHERITS (parent); INSERT INTO mine SELECT * FROM little; SELECT predicted('reg', 'parent'); ROLLBACK}, 'pool 1 of 1', 'SET max_parallel_workers_per_gather = 1;');
same('a query of one batch', q{SELECT predicted('slow', 'SELECT * FROM little LIMIT 256')}, '');
same('a query of two', q{SELECT predicted('slow', 'SELECT * FROM little LIMIT 257')}, 'pool 3 of 3');
same('a query without rows', q{SELECT count(*) FROM ag_predict_table('slow', 'SELECT * FROM little LIMIT 0')}, '');
same('a query without workers free', q{SELECT predicted('slow', 'SELECT * FROM little')}, 'pool 0 of 3', 'SET max_parallel_workers = 0;');
same('a query that predicts by itself', q{SELECT predicted('slow', 'SELECT id, ag_predict(''reg'', little) AS x, n FROM little')}, 'pool 3 of 3');
same('a query that calls this', q{SELECT predicted('slow', 'SELECT key AS id, value AS x, value AS n FROM ag_predict_table(''slow'', ''SELECT * FROM little'', ''id'')')}, 'pool 3 of 3');
$node->safe_psql('postgres', q{CREATE FUNCTION same(x float8) RETURNS float8 LANGUAGE plpgsql PARALLEL UNSAFE AS $$ BEGIN RETURN x; EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$;
	CREATE VIEW unsafe AS SELECT id, same(x) AS x, n FROM little});
same('an unsafe function', q{SELECT predicted('slow', 'SELECT id, same(x) AS x, n FROM little')}, '');
same('an unsafe function in a view', q{SELECT predicted('slow', 'unsafe')}, '');

# where one process has to do
same('a table without workers', q{BEGIN; ALTER TABLE t SET (parallel_workers = 0); SELECT predicted('reg', 't'); ROLLBACK}, '');
same('a table with one', q{BEGIN; ALTER TABLE t SET (parallel_workers = 1); SELECT predicted('reg', 't'); ROLLBACK}, '1 of 1');
same('too little work', q{SELECT predicted('reg', 't')}, '', 'SET parallel_setup_cost = 1000000;');
same('a query that is too little work', q{SELECT predicted('slow', 'SELECT * FROM little')}, '', 'SET parallel_setup_cost = 1000000;');
same('a key whose type workers must not write', q{SELECT predicted('reg', 'odds', 'o')}, '');
same('the same table with another key', q{SELECT predicted('reg', 'odds', 'id')}, '3 of 3');

# rights
$node->safe_psql('postgres', q{
	CREATE ROLE reader; CREATE ROLE stranger; CREATE ROLE clerk; GRANT SELECT ON t TO clerk; SELECT ag_grant('reg', 'clerk'); GRANT SELECT (id, x, k, n, d, b, s, later) ON t TO reader; SELECT ag_grant('reg', 'reader'); SELECT ag_grant('reg', 'stranger');});
same('rights on columns', q{SET ROLE reader; SELECT predicted('reg', 't')}, 'pool 1 of 1', 'SET max_parallel_workers_per_gather = 1;');
same('the right on the table', q{SET ROLE clerk; SELECT predicted('reg', 't')}, '3 of 3');
same('the right on the partitioned table', q{GRANT SELECT ON parts TO clerk; SET ROLE clerk; SELECT predicted('reg', 'parts')}, '3 of 3');
for my $call (q{SET ROLE stranger; SELECT predicted('reg', 't')}, q{SET ROLE reader; SELECT predicted('reg', 't', 'long')}, q{SET ROLE clerk; SELECT predicted('reg', 'part1')})
{
	my ($out, $said, $err) = called($parallel, $call);
	like($err, qr/ERROR:  permission denied for table (t|part1)\b/, 'no right');
	is($out, '', 'nor a row');
}
$node->safe_psql('postgres', q{CREATE POLICY own ON t TO clerk USING (id % 10 = 3); ALTER TABLE t ENABLE ROW LEVEL SECURITY});
same('row-level security', q{SET ROLE clerk; SELECT predicted('reg', 't')}, 'pool 1 of 1', 'SET max_parallel_workers_per_gather = 1;');
is((called($parallel, q{SET ROLE clerk; SELECT count(*) FROM ag_predict_table('reg', 't', 'id') WHERE key::int % 10 <> 3}))[0], '0', 'shows no other rows');
same('row-level security that does not apply to the role', q{SELECT predicted('reg', 't')}, '3 of 3');
$node->safe_psql('postgres', q{ALTER TABLE t DISABLE ROW LEVEL SECURITY});

# no workers, or not enough
same('no workers free', q{SELECT predicted('reg', 't')}, '0 of 3', 'SET max_parallel_workers = 0;');
same('no workers free, though the session should only collect', q{SELECT predicted('reg', 't')}, '0 of 3', 'SET max_parallel_workers = 0; SET parallel_leader_participation = off;');
same('not enough workers', q{SELECT predicted('reg', 't')}, '2 of 3', 'SET max_parallel_workers = 2;');

# errors, of the session or a worker
$node->safe_psql('postgres', q{CREATE TABLE bad AS SELECT id, x, n::text AS n FROM t; UPDATE bad SET n = 'many' WHERE id = 29000; ANALYZE bad; SELECT ag_fit('SELECT x, n, n AS y FROM t LIMIT 500', 'y', '{"name": "two", "verbosity": 0, "hyperparameters": {"LR": {}}}')});
for my $leader (qw(on off))
{
	my ($out, $said, $err) = called("$parallel SET parallel_leader_participation = $leader;", q{SELECT predicted('two', 'bad')});
	is($said, '3 of 3', "a value that is none (leader $leader)");
	like($err, qr/ERROR: .*column "n".*many/, 'is told');
	like($err, qr/CONTEXT:(.|\n)*parallel worker/, 'by a worker') if $leader eq 'off';
	none_left('afterwards');
}
my ($out, $said, $err) = called($parallel, q{DO $$ BEGIN PERFORM predicted('two', 'bad'); EXCEPTION WHEN invalid_text_representation THEN RAISE NOTICE 'caught'; END $$; SELECT predicted('reg', 't')});
like($err, qr/NOTICE:  caught/, 'an error can be caught');
is($out, (called($serial, q{SELECT predicted('reg', 't')}))[0], 'and the session goes on');

# stopped
$node->safe_psql('postgres', q{CREATE TABLE large AS SELECT a.id * 100 + i AS id, a.x + i AS x, a.n FROM t a, generate_series(1, 25) i; ANALYZE large});
my $slow = q{SELECT predicted('slow', 'large')};
($out, $said, $err) = called("$parallel SET max_parallel_workers_per_gather = 1;", q{SELECT predicted('two', 'SELECT * FROM bad')});
is($said, 'pool 1 of 1', 'a value that is none in a query');
like($err, qr/ERROR: .*column "n".*many/, 'is told, too');
none_left('a query that failed');
($out, $said, $err) = called("$parallel SET statement_timeout = 400;", $slow);
is($said, '3 of 3', 'a timeout: workers were there');
like($err, qr/canceling statement due to statement timeout/, 'a timeout');
none_left('a timeout');
for my $case ([ 'a cancel', "pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND query LIKE '%slow%large%' AND pid <> pg_backend_pid()", qr/canceling statement due to user request/ ],
	[ 'the end of the session', "pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND query LIKE '%slow%large%' AND pid <> pg_backend_pid()", qr/terminating connection/ ],
	[ 'the end of a worker', "pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker' LIMIT 1", qr/ERROR:.*terminating/ ],
	[ 'a query and a cancel', "pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND query LIKE '%slow%large%' AND pid <> pg_backend_pid()", qr/canceling statement due to user request/, q{SELECT predicted('slow', 'SELECT * FROM large')} ],
	[ 'a query and the end of a worker', "pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker' LIMIT 1", qr/ERROR:.*terminating/, q{SELECT predicted('slow', 'SELECT * FROM large')} ])
{
	my ($name, $stop, $expected, $call) = @$case;
	my $run = start_fit($node, "$parallel " . ($call // $slow));
	ok(wait_until(20, sub { $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'}) eq '3' }), "$name: workers came");
	$node->safe_psql('postgres', "SELECT $stop");
	end_fit($run);
	like($run->{err}, $expected, "$name: says so");
	none_left($name);
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM ag_predict_table('reg', 't')}), (split / /, (called($serial, q{SELECT predicted('reg', 't')}))[0])[0], 'the server goes on');
$node->stop;
done_testing();
