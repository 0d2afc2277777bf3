# Models survive pg_dump in each format: after the restore they predict bit for bit the same, and life goes on.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE keeper; CREATE DATABASE one');
$node->safe_psql(
	'one', q{
	CREATE SCHEMA "Ag Pg";
	CREATE EXTENSION ag_pg WITH SCHEMA "Ag Pg";
	SET search_path = public, "Ag Pg";
	CREATE TABLE flat AS SELECT i % 50 AS size, 'k' || i % 3 AS kind, timestamptz '2024-01-01' + i % 40 * interval '5 hours' AS seen,
		CASE WHEN i % 9 = 0 THEN 'Infinity'::float8 ELSE (i % 70) / 3.0 END AS depth,
		(i % 50) * 2.0 + (i % 3) * 10 + (i % 70) / 7.0 AS rent, CASE WHEN i % 50 > 25 THEN 'dear' ELSE 'cheap' END AS class
		FROM generate_series(1, 500) i;
	SELECT ag_fit('SELECT size, kind, seen, depth, rent FROM flat', 'rent',
		'{"name": "rent", "verbosity": 0, "hyperparameters": {"GBM": [{"num_boost_round": 60}, {"num_boost_round": 30, "num_leaves": 5}]}}');
	SELECT ag_fit('SELECT size, kind, seen, depth, class FROM flat', 'class',
		'{"name": "class", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20}}}') FROM generate_series(1, 2);
	SELECT ag_activate('class', 1);
	SELECT ag_grant('rent', 'keeper', 'predict');
	SELECT ag_create_function('class', 'public.predict_class', 'flat');
	CREATE VIEW seen AS SELECT f.*, f.predict_class AS p FROM flat f;
	GRANT CREATE ON SCHEMA public TO keeper;
	GRANT USAGE ON SCHEMA "Ag Pg" TO keeper;
	SET ROLE keeper;
	SET search_path = public, "Ag Pg";
	CREATE TABLE kept AS SELECT i % 30 AS x, i % 30 * 3.0 AS y FROM generate_series(1, 200) i;
	SELECT ag_fit('kept', 'y', '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20}}}');
});

my $answers = q{
	SET search_path = public, "Ag Pg";
	SET extra_float_digits = 1;
	SELECT md5(string_agg(concat_ws('|', ag_predict('rent', f), ag_predict('rent/GBM', f), ag_predict_proba('class', f), ag_predict_proba('class@2', f),
		predict_class(f)), ',' ORDER BY f)) FROM flat f;
	SELECT md5(string_agg(ag_predict('kept_y', k)::text, ',' ORDER BY k)) FROM kept k;
	SELECT name, version, versions, pinned, owner, score_val, best_model FROM ag_models ORDER BY name COLLATE "C";
	SELECT model, score_val FROM ag_leaderboard('rent') ORDER BY model COLLATE "C";
	SELECT md5(ag_info('rent')::text);
	SELECT count(*) FROM seen WHERE p IN ('dear', 'cheap');
	SET ROLE keeper;
	SELECT name, my_right FROM ag_models ORDER BY name COLLATE "C";
};
my $before = $node->safe_psql('one', $answers);
like($before, qr/^class\|1\|2\|t\|/m, 'versions and the pinned one are there to be dumped');
like($before, qr/^kept_y\|1\|1\|f\|keeper\|/m, 'a model of another role too');
like($before, qr/^rent\|predict$/m, 'and a right that was given');

my $dir = PostgreSQL::Test::Utils::tempdir();
my $after_dump = sub {
	my ($database, $what) = @_;
	is($node->safe_psql($database, $answers), $before, "$what: the same, bit for bit");
	$node->safe_psql(
		$database, q{
		SET search_path = public, "Ag Pg";
		SELECT ag_fit('SELECT size, rent FROM flat', 'rent', '{"name": "rent", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 9}}}');
		SELECT ag_fit('SELECT size, rent FROM flat', 'rent', '{"name": "new", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 9}}}');
	});
	is($node->safe_psql($database, q{SELECT name, version FROM "Ag Pg".ag_models WHERE name IN ('new', 'rent') ORDER BY name}),
		"new|1\nrent|2", "$what: fitting goes on beside what was restored");
	is($node->safe_psql($database, q{SELECT "Ag Pg".ag_drop('class')}), '2', "$what: and dropping");
};

for my $format ('p', 'c', 'd')
{
	my $dump = "$dir/one.$format";
	my $database = "from_$format";
	$node->command_ok([ 'pg_dump', '-F', $format, '-f', $dump, 'one' ], "format $format: dumped");
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	if ($format eq 'p')
	{
		$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $database, '-f', $dump ], "format $format: restored");
	}
	else
	{
		$node->command_ok([ 'pg_restore', '-e', '-d', $database, $dump ], "format $format: restored");
	}
	$after_dump->($database, "format $format");
}

# Restored over what is there, and has gone on since: nothing of that stays. A session that had it open predicts by what was restored.
my $open = $node->background_psql('from_c', on_error_stop => 0);
$open->query(q{SET search_path = public, "Ag Pg"});
is($open->query(q{SELECT count(ag_predict('new', f)) FROM flat f}), '500', 'restored over: a model that is not in the dump');
$node->command_ok([ 'pg_restore', '-e', '--clean', '--if-exists', '-d', 'from_c', "$dir/one.c" ], 'restored over');
is($open->query(q{SELECT md5(string_agg(ag_predict('rent', f)::text, ',' ORDER BY f)) FROM flat f}),
	$node->safe_psql('one', q{SET search_path = public, "Ag Pg"; SELECT md5(string_agg(ag_predict('rent', f)::text, ',' ORDER BY f)) FROM flat f}),
	'restored over: an open session predicts by what was restored');
$open->query(q{SELECT ag_predict('new', f) FROM flat f});
like($open->{stderr}, qr/model "new" does not exist/, 'restored over: and misses what was not');
$open->quit;
$after_dump->('from_c', 'restored over');

# A dump without data has no models; one of a table alone has nothing of ours.
$node->command_ok([ 'pg_dump', '-s', '-f', "$dir/schema", 'one' ], 'schema only: dumped');
$node->safe_psql('postgres', 'CREATE DATABASE empty');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', 'empty', '-f', "$dir/schema" ], 'schema only: restored');
is($node->safe_psql('empty', 'SELECT count(*) FROM "Ag Pg".ag_models'), '0', 'schema only: no model');
my ($rc, $stdout, $stderr) = $node->psql('empty', 'SELECT predict_class(f) FROM flat f UNION ALL SELECT predict_class(ROW(1, NULL, NULL, NULL, NULL, NULL)::flat)');
like($stderr, qr/model "class" does not exist/, 'schema only: a function without its model says so');
$node->command_ok([ 'pg_dump', '-t', 'flat', '-f', "$dir/table", 'one' ], 'one table: dumped');
unlike(slurp_file("$dir/table"), qr/ag_pg|ag_predictor|ag_member/, 'one table: nothing of ours comes along');

# DROP EXTENSION takes all of it along, and it can come back in another schema in a session that knew the old one.
$node->safe_psql(
	'from_p', q{
	SELECT count("Ag Pg".ag_predict('rent@1', f)) FROM flat f;
	DROP EXTENSION ag_pg CASCADE;
	CREATE EXTENSION ag_pg WITH SCHEMA public;
	SELECT ag_fit('SELECT size, rent FROM flat', 'rent', '{"name": "rent", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 9}}}');
	SELECT count(ag_predict('rent', f)) FROM flat f;
});
is($node->safe_psql('from_p', 'SELECT name, version FROM ag_models'), 'rent|1', 'made anew in another schema');

# Whose models they were has another name now, or isn't there: they are nobody's but a superuser's, until they are given to somebody.
$node->safe_psql('postgres', q{CREATE DATABASE orphaned; ALTER ROLE keeper RENAME TO keeper2});
$node->command_ok([ 'pg_restore', '-e', '--no-owner', '--no-privileges', '-d', 'orphaned', "$dir/one.c" ], 'a role is gone: restored');
$node->safe_psql('orphaned', q{GRANT USAGE ON SCHEMA "Ag Pg" TO keeper2; GRANT SELECT ON ALL TABLES IN SCHEMA public TO keeper2});
my $theirs = q{SET search_path = public, "Ag Pg"; SET ROLE keeper2; SELECT string_agg(name || ' ' || my_right, ', ' ORDER BY name COLLATE "C") FROM ag_models; };
is($node->safe_psql('orphaned', $theirs), '', 'a role is gone: who has come instead has no right');
is($node->safe_psql('orphaned', q{SET search_path = public, "Ag Pg"; SELECT count(ag_predict('kept_y', k)), max(owner) FROM kept k, ag_models WHERE name = 'kept_y'}),
	'200|keeper', 'a role is gone: a superuser predicts, and sees whose it was');
is($node->safe_psql('orphaned', q{SELECT "Ag Pg".ag_reassign('keeper', 'keeper2')}), '1', 'a role is gone: reassigned');
is($node->safe_psql('orphaned', $theirs . q{SELECT count(ag_predict('kept_y', k)) FROM kept k; SELECT ag_drop('kept_y')}), "kept_y owner, rent predict\n200\n1", 'a role is gone: then models and grants are those of the other one');

$node->stop;
done_testing();
