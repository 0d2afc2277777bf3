# The owner of a database installs the extension without being a superuser: its tables are then his, but for the one that says what jobs
# run as whom. He can dump and restore it; and what he can do to his tables gives him nobody else's rights.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('trusted');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE keeper LOGIN; CREATE DATABASE mine OWNER keeper; CREATE DATABASE again OWNER keeper');

my $quick = q{'{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20}}}'};
my $fit = "SELECT ag_fit('small', 'y', $quick)";
my $async = "SELECT ag_fit_async('small', 'y', $quick)";

sub as_keeper { my ($sql, $database) = @_; return $node->safe_psql($database // 'mine', $sql, extra_params => [ '-U', 'keeper' ]); }
sub refused
{
	my ($sql, $like, $name, $user) = @_;
	my ($out, $err) = ('', '');
	$node->psql('mine', $sql, stdout => \$out, stderr => \$err, extra_params => [ '-U', $user // 'keeper' ]);
	like($err, $like, $name);
	return;
}
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');

as_keeper('CREATE EXTENSION ag_pg; CREATE TABLE small AS SELECT i % 50 AS x, (i % 50) * 2.0 AS y FROM generate_series(1, 300) AS i');
is(as_keeper($fit), 'small_y', 'a plain database owner installs the extension and fits');
my $job = as_keeper($async);
is(as_keeper("SELECT ag_wait($job, 30)"), 'succeeded', 'and has jobs');
is(as_keeper("SELECT string_agg(c.relname, ' ') FROM pg_depend d JOIN pg_class c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid WHERE d.deptype = 'e' AND c.relkind IN ('r', 'v', 'S') AND c.relowner <> 'keeper'::regrole"),
	'ag_job_order', 'all of it is his but for the orders');

# dumped and restored by him: all that has ended, nothing that hasn't
$node->safe_psql('mine', q{UPDATE ag_job SET state = 'queued' WHERE id = } . $job);
my $ended = as_keeper($async);
as_keeper("SELECT ag_wait($ended, 30)");
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
$node->command_ok([ 'pg_dump', '-U', 'keeper', '-Fc', '-f', $dump, 'mine' ], 'he dumps it');
$node->command_ok([ 'pg_restore', '-e', '-U', 'keeper', '-d', 'again', $dump ], 'he restores it');
is(as_keeper('SELECT id, state FROM ag_jobs', 'again'), "$ended|succeeded", 'restored: jobs that had ended');
is(as_keeper('SELECT name, version FROM ag_models', 'again'), 'small_y|3', 'restored: models');
is(as_keeper($async, 'again'), $ended + 1, 'restored: ids go on');
as_keeper("DELETE FROM ag_job WHERE id = $job");

# forging what a job runs, and as whom
refused("INSERT INTO ag_job_order SELECT * FROM ag_job_order", qr/permission denied for table ag_job_order/, 'orders: no insert');
refused('UPDATE ag_job_order SET role = 10', qr/permission denied for table ag_job_order/, 'orders: no update');
refused('TABLE ag_job_order', qr/permission denied for table ag_job_order/, 'orders: no look');
refused('ALTER TABLE ag_job_order OWNER TO keeper', qr/must be owner of table ag_job_order/, 'orders: not his to take');
# since 15 the schema public, and with it the right to drop what is there, is the database's owner's
refused('DROP TABLE ag_job_order', $node->safe_psql('postgres', 'SHOW server_version_num') >= 150000 ? qr/cannot drop table ag_job_order because extension ag_pg requires it/ : qr/must be owner of table ag_job_order/,
	'orders: not his to drop');
as_keeper("INSERT INTO ag_job (id, owner, state, home, model, data, label, options, submitted_at) SELECT 999, '$superuser', 'queued', home, 'x', 'SELECT pg_read_file(''PG_VERSION'') AS x, 1 AS y', 'y', '{}', now() FROM ag_job LIMIT 1");
as_keeper($async);
sleep 1;
is($node->safe_psql('mine', q{SELECT count(*) FROM ag_predictor WHERE name = 'x'}), '0', 'a record without an order runs nothing');
as_keeper('DELETE FROM ag_job WHERE id = 999');

# code of his on his tables runs as him, when a superuser fits too, and can't become anybody else
as_keeper(q{
	CREATE TABLE seen (who text);
	GRANT ALL ON seen TO PUBLIC;
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO public.seen VALUES (current_user);
		BEGIN RESET ROLE; INSERT INTO public.seen VALUES ('reset role'); EXCEPTION WHEN OTHERS THEN NULL; END;
		BEGIN SET SESSION AUTHORIZATION DEFAULT; INSERT INTO public.seen VALUES ('set session authorization'); EXCEPTION WHEN OTHERS THEN NULL; END;
		BEGIN EXECUTE 'ALTER ROLE keeper SUPERUSER'; INSERT INTO public.seen VALUES ('alter role'); EXCEPTION WHEN OTHERS THEN NULL; END;
		RETURN NEW;
	END $$;
	CREATE TRIGGER note BEFORE INSERT OR UPDATE ON ag_predictor FOR EACH ROW EXECUTE FUNCTION note();
	CREATE TRIGGER note BEFORE INSERT OR UPDATE ON ag_job FOR EACH ROW EXECUTE FUNCTION note();});
is($node->safe_psql('mine', $fit), 'small_y', 'a superuser fits');
$job = $node->safe_psql('mine', $async);
is($node->safe_psql('mine', "SELECT ag_wait($job, 30)"), 'succeeded', 'and has a job');
is($node->safe_psql('mine', "SELECT string_agg(DISTINCT who, ' ') FROM seen"), 'keeper', 'triggers of the owner run as the owner');
as_keeper('DROP TRIGGER note ON ag_predictor; DROP TRIGGER note ON ag_job');
as_keeper('CREATE CONSTRAINT TRIGGER late AFTER INSERT ON ag_predictor DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note()');
refused($fit, qr/cannot fire deferred trigger within security-restricted operation/, 'none waits for the commit, and the superuser', $superuser);
as_keeper('DROP TRIGGER late ON ag_predictor');

# tables that he altered are refused, not misread
for my $case ([ 'ALTER TABLE ag_predictor ALTER version TYPE text', qr/column 3 of table "ag_predictor" was altered/ ],
	[ 'ALTER TABLE ag_predictor ALTER name TYPE bigint USING 1', qr/column 2 of table "ag_predictor" was altered/ ],
	[ 'ALTER TABLE ag_predictor DROP COLUMN format CASCADE', qr/column 21 of table "ag_predictor" was altered/ ],
	[ 'ALTER TABLE ag_predictor DROP CONSTRAINT ag_predictor_name_version_key; CREATE INDEX ag_predictor_name_version_key ON ag_predictor USING hash (name)', qr/index .* was replaced/ ],
	[ 'ALTER TABLE ag_predictor DROP CONSTRAINT ag_predictor_name_version_key; CREATE INDEX ag_predictor_name_version_key ON ag_predictor (lower(name))', qr/ERROR/ ])
{
	my ($ddl, $like) = @$case;
	refused("BEGIN; $ddl; SELECT ag_info('small_y'); ROLLBACK;", qr/$like|cannot alter type of a column used by a view|cannot drop/, "refused: $ddl");
}
is($node->safe_psql('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'keeper'}), 'f', 'he is no superuser after all');
$node->stop;
done_testing();
