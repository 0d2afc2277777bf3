# Logical replication of the tables that models are: the subscriber predicts the same, bit for bit; new versions, rights and ends arrive;
# and it never starts the publisher's jobs, though their records arrive too.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', "fsync = off\nag_pg.max_jobs = 1\n");
$publisher->start;
make_data($publisher);
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init(allows_streaming => 'logical');
# preloaded: it starts queued jobs by itself, those that are its own
$subscriber->append_conf('postgresql.conf', "fsync = off\nshared_preload_libraries = 'ag_pg'\n");
$subscriber->start;
make_data($subscriber);

my $reader = 'CREATE ROLE reader; GRANT SELECT ON small TO reader';
$_->safe_psql('postgres', $reader) for $publisher, $subscriber;
$publisher->safe_psql('postgres', "SELECT ag_fit('small', 'y', '" . quick_options('"name": "num"') . q{'); SELECT ag_grant('num', 'reader', 'predict')});

# all tables of the extension, the orders of jobs too
my @tables = split /\n/, $publisher->safe_psql('postgres', q{SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relname LIKE 'ag\_%' ORDER BY 1});
ok((grep { $_ eq 'ag_member_part' } @tables) && (grep { $_ eq 'ag_job_order' } @tables), 'there are tables to publish');
$publisher->safe_psql('postgres', 'CREATE PUBLICATION models FOR TABLE ' . join(', ', @tables));
$subscriber->safe_psql('postgres', q{CREATE SUBSCRIPTION models CONNECTION '} . $publisher->connstr . q{ dbname=postgres' PUBLICATION models});
$subscriber->wait_for_subscription_sync($publisher, 'models');

my $answers = q{
	SELECT md5(string_agg(ag_predict('num', s)::text, ',' ORDER BY s)) FROM small s;
	SELECT model, score_val FROM ag_leaderboard('num') ORDER BY model COLLATE "C";
	SELECT md5(ag_info('num')::text);
	SELECT name, version, owner FROM ag_models ORDER BY name COLLATE "C";
	SET ROLE reader;
	SELECT name, my_right FROM ag_models;
	SELECT count(ag_predict('num', s)) FROM small s;
};
my $before = $publisher->safe_psql('postgres', $answers);
like($before, qr/^num\|predict\n300$/m, 'the publisher predicts, for who may, too');
is($subscriber->safe_psql('postgres', $answers), $before, 'what was there is copied: the same, bit for bit');

my ($numbers) = split /\n/, $before;

# tables that are copied one after the other: a model that is not whole yet is an error, and works in the same session when it is
for my $table ('ag_member_part', 'ag_member', 'ag_predictor_feature')
{
	my $early = $subscriber->background_psql('postgres', on_error_stop => 0);
	$early->query("SET session_replication_role = replica; CREATE TEMP TABLE later AS SELECT * FROM $table; DELETE FROM $table");
	my $half = $early->query(q{SELECT md5(string_agg(ag_predict('num', s)::text, ',' ORDER BY s)) FROM small s});
	like($half . $early->{stderr}, qr/^\Q$numbers\E|ERROR:  (stored predictor is damaged|the model has no member)/, "without $table: the right answer or an error");
	$early->query("INSERT INTO $table SELECT * FROM later");
	is($early->query(q{SELECT md5(string_agg(ag_predict('num', s)::text, ',' ORDER BY s)) FROM small s}), $numbers, "with $table: as on the publisher")
	  or diag($early->{stderr});
	$early->quit;
}

# a session that has opened the model sees the next version
my $session = $subscriber->background_psql('postgres');
is($session->query_safe(q{SELECT round(avg(ag_predict('num', s))) < 500 FROM small s}), 't', 'an open session predicts');
$publisher->safe_psql('postgres', "UPDATE small SET y = y + 1000; SELECT ag_fit('small', 'y', '" . quick_options('"name": "num"') . "')");
$publisher->wait_for_catchup('models');
is($session->query_safe(q{SELECT round(avg(ag_predict('num', s))) > 500 FROM small s}), 't', 'and sees the new version');
is($subscriber->safe_psql('postgres', $answers), $publisher->safe_psql('postgres', $answers), 'the new version is the same, bit for bit');

# one job runs on the publisher, one waits: neither does here
my ($runs, $waits) = map { $publisher->safe_psql('postgres', $_ =~ s/ag_fit\(/ag_fit_async(/r) }
  slow_fit(), "SELECT ag_fit('small', 'y', '" . quick_options('"name": "later"') . "')";
ok(wait_until(20, sub { $publisher->safe_psql('postgres', "SELECT state FROM ag_jobs WHERE id = $runs") eq 'running' }), 'a job runs there');
$publisher->wait_for_catchup('models');
ok(wait_until(5, sub { $subscriber->safe_psql('postgres', "SELECT count(*) FROM ag_job WHERE id IN ($runs, $waits)") eq '2' }), 'their records arrive');
is($subscriber->safe_psql('postgres', "SELECT string_agg(DISTINCT state, ' ') FROM ag_jobs WHERE id IN ($runs, $waits)"), 'failed', 'here they are not to be run');
$subscriber->restart;
sleep 1;
is($subscriber->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ag_pg job'}), '0', 'no job starts, after a restart neither');
$publisher->safe_psql('postgres', "SELECT ag_cancel($runs)");
is($publisher->safe_psql('postgres', "SELECT ag_wait($waits, 30)"), 'succeeded', 'the one that waited runs where it was submitted');
$publisher->wait_for_catchup('models');
is($subscriber->safe_psql('postgres', "SELECT state FROM ag_jobs WHERE id = $waits"), 'succeeded', 'and its end arrives');
is($subscriber->safe_psql('postgres', q{SELECT count(ag_predict('later', s)) FROM small s}), '300', 'with its model');

$publisher->safe_psql('postgres', q{SELECT ag_drop('num')});
$publisher->wait_for_catchup('models');
my ($rc, $stdout, $stderr) = $subscriber->psql('postgres', q{SELECT ag_predict('num', s) FROM small s LIMIT 1});
like($stderr, qr/model "num" does not exist/, 'a dropped model is gone here, too');
is($subscriber->safe_psql('postgres', q{SELECT count(*) FROM ag_member_part p WHERE NOT EXISTS (SELECT FROM ag_predictor a WHERE a.id = p.predictor)}), '0',
	'with all its parts');

$subscriber->stop;
$publisher->stop;
done_testing();
