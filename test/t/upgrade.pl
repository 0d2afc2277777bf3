# pg_upgrade: models go to the new cluster with versions, rights, functions and views; they predict the same there, bit for bit, and life goes on.
# A job that waited starts there no more.
#
# AG_PG_OLD_PG_CONFIG is the pg_config of the server to upgrade from, which has an ag_pg of its own installed; without it, the same server
# is both.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use Cwd qw(getcwd);
use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $pg_config = $ENV{AG_PG_OLD_PG_CONFIG} || $ENV{PG_CONFIG} || 'pg_config';
chomp(my $old_bin = `$pg_config --bindir`);
chomp(my $new_bin = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --bindir`);
plan skip_all => 'the server comes without pg_upgrade' unless -x "$new_bin/pg_upgrade";

my @same = (extra => [ '--data-checksums', '--locale=C', '--encoding=UTF8' ]);
my $old = PostgreSQL::Test::Cluster->new('old', $old_bin ne $new_bin ? (install_path => dirname($old_bin)) : ());
$old->init(@same);
$old->append_conf('postgresql.conf', "fsync = off\n");
$old->start;
note 'from ' . $old->safe_psql('postgres', 'SHOW server_version') . " of $old_bin to $new_bin";

my $quick = quick_options();
$old->safe_psql('postgres', 'CREATE ROLE keeper; CREATE ROLE reader; CREATE DATABASE one');
$old->safe_psql(
	'one', qq{
	CREATE SCHEMA "Ag Pg";
	CREATE EXTENSION ag_pg WITH SCHEMA "Ag Pg";
	SET search_path = public, "Ag Pg";
	CREATE TABLE flat AS SELECT i % 50 AS size, 'k' || i % 3 AS kind, (i % 50) * 2.0 + (i % 3) * 10 AS rent,
		CASE WHEN i % 50 > 25 THEN 'dear' ELSE 'cheap' END AS class FROM generate_series(1, 500) i;
	GRANT SELECT ON flat TO keeper, reader;
	SELECT ag_fit('SELECT size, kind, rent FROM flat', 'rent', '$quick'::jsonb || '{"name": "rent"}') FROM generate_series(1, 3);
	SELECT ag_fit('SELECT size, kind, class FROM flat', 'class', '$quick'::jsonb || '{"name": "class", "hyperparameters": {"GBM": {}, "LR": {}, "NN_TORCH": {}}}');
	SELECT ag_activate('rent', 2);
	SELECT ag_grant('rent', 'reader', 'predict');
	SELECT ag_create_function('class', 'public.predict_class', 'flat');
	GRANT EXECUTE ON FUNCTION predict_class TO reader;
	CREATE VIEW seen AS SELECT f.*, f.predict_class AS p, ag_predict('rent', f) AS r FROM flat f;
	CREATE MATERIALIZED VIEW kept AS SELECT size, ag_predict('rent\@1', f) AS r FROM flat f;
	GRANT CREATE ON SCHEMA public TO keeper;
	GRANT USAGE ON SCHEMA "Ag Pg" TO keeper, reader;
	SET ROLE keeper;
	SET search_path = public, "Ag Pg";
	SELECT ag_fit('SELECT size, rent FROM flat', 'rent', '$quick'::jsonb || '{"name": "theirs"}');
});
my $path = 'SET search_path = public, "Ag Pg"; ';
my $ended = $old->safe_psql('one', $path . qq{SET ROLE keeper; SELECT ag_fit_async('SELECT size, rent FROM flat', 'rent', '$quick'::jsonb || '{"name": "job"}')});
is($old->safe_psql('one', $path . "SELECT ag_wait($ended, 60)"), 'succeeded', 'a job has ended');
my $answers = $path . q{
	SELECT md5(string_agg(concat_ws('|', ag_predict('rent', f), ag_predict('rent@3/GBM', f), ag_predict_proba('class', f), ag_predict_proba('class/LR', f),
		predict_class(f)), ',' ORDER BY f)) FROM flat f;
	SELECT md5(string_agg(concat_ws('|', p, r), ',' ORDER BY s)) FROM seen s;
	SELECT md5(string_agg(r::text, ',' ORDER BY k)) FROM kept k;
	SELECT name, version, versions, pinned, owner, problem_type, best_model FROM ag_models ORDER BY name COLLATE "C";
	SELECT model, score_val FROM ag_leaderboard('class') ORDER BY model COLLATE "C";
	SELECT md5(ag_info('rent@1')::text);
	SELECT md5(ag_report('class', 'flat')) IS NOT NULL;
	SELECT id, owner, state, model, version FROM ag_jobs WHERE state = 'succeeded';
	SELECT pg_get_functiondef('predict_class'::regproc), pg_get_userbyid(proowner), proacl FROM pg_proc WHERE oid = 'predict_class'::regproc;
	SELECT extversion, pg_get_userbyid(extowner) FROM pg_extension WHERE extname = 'ag_pg';
	SET ROLE reader;
	SELECT name, my_right FROM ag_models ORDER BY name COLLATE "C";
	SELECT count(ag_predict('rent', f)), count(predict_class(f)) FROM flat f;
};
# No worker can start it any more.
$old->append_conf('postgresql.conf', "max_worker_processes = 0\n");
$old->restart;
my $waits = $old->safe_psql('one', $path . qq{SELECT ag_fit_async('flat', 'rent', '$quick'::jsonb || '{"name": "waited"}')});
is($old->safe_psql('one', $path . "SELECT state FROM ag_jobs WHERE id = $waits"), 'queued', 'another one waits');
my $before = $old->safe_psql('one', $answers);
like($before, qr/^rent\|2\|3\|t\|/m, 'versions and the activated one are there to be taken along');
like($before, qr/^theirs\|1\|1\|f\|keeper\|/m, 'a model of another role too');
like($before, qr/^rent\|predict\n500\|500$/m, 'and the rights of a reader');
$old->stop;

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init(@same);
my $here = getcwd();
chdir PostgreSQL::Test::Utils::tempdir() or die;
my $upgraded = command_ok(
	[   "$new_bin/pg_upgrade", '-d', $old->data_dir, '-D', $new->data_dir, '-b', $old_bin, '-B', $new_bin,
		'-s', $new->host, '-p', $old->port, '-P', $new->port
	],
	'pg_upgrade');
chdir $here or die;
$new->append_conf('postgresql.conf', "fsync = off\nshared_preload_libraries = 'ag_pg'\n");
$new->start;

is($new->safe_psql('one', $answers), $before, 'the same in the new cluster, bit for bit');
is($new->safe_psql('one', $path . "SELECT state, message FROM ag_jobs WHERE id = $waits"),
	'failed|the job came with a copy of its database, and is left to where it was submitted; submit it again to have it run here', 'a job that waited says that it is to be submitted again');
$new->safe_psql('one', $path . qq{
	SELECT ag_fit('SELECT size, kind, rent FROM flat', 'rent', '$quick'::jsonb || '{"name": "rent"}');
	SELECT ag_activate('rent', NULL);
	REFRESH MATERIALIZED VIEW kept;
	SELECT ag_create_function('theirs', 'public.predict_theirs', 'flat');
	SELECT ag_drop('class')});
is($new->safe_psql('one', $path . q{SELECT name, version FROM ag_models WHERE name IN ('class', 'rent')}), 'rent|4', 'fitting, activating and dropping go on');
is($new->safe_psql('one', $path . 'SELECT corr(predict_theirs(f), f.rent) > 0.5 FROM flat f'), 't', 'a new function');
my $job = $new->safe_psql('one', $path . qq{SET ROLE keeper; SELECT ag_fit_async('SELECT size, rent FROM flat', 'rent', '$quick'::jsonb || '{"name": "job"}')});
cmp_ok($job, '>', $waits, 'ids of jobs go on');
is($new->safe_psql('one', $path . "SELECT ag_wait($job, 60)"), 'succeeded', 'and a job runs');
is($new->safe_psql('one', $path . q{SELECT string_agg(name || '@' || version, ' ' ORDER BY name COLLATE "C") FROM ag_models}), 'job@2 rent@4 theirs@1', 'the one that waited never ran');
my ($rc, $stdout, $stderr) = $new->psql('one', $path . q{SELECT count(predict_class(f)) FROM flat f});
like($stderr, qr/model "class" does not exist/, 'the function of the dropped model says so');

$new->stop;
done_testing();
