# Two builds of the extension in one server, as there are while a package is upgraded under its sessions: whoever has one loaded goes on with it,
# and where parts of both meet, the call says so. Each has statistics and shared models of its own.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use File::Copy qw(copy);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

chomp(my $lib = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --pkglibdir`);
my $dir = PostgreSQL::Test::Utils::tempdir();
my ($build) = slurp_file("$lib/ag_pg.so") =~ /(\d+\.\d+\.\d+\+[0-9a-f]{16})\0/ or BAIL_OUT('no build id in the library');

# The other build: the same but for its id.
(my $other = $build) =~ s/\+(.*)/'+' . reverse($1)/e;
isnt($other, $build, "builds $build and $other");
sub put_other
{
	my ($file, $as) = @_;
	my $bytes = slurp_file("$lib/$file");
	cmp_ok($bytes =~ s/\Q$build\E/$other/g, '>', 0, "$file has its id");
	unlink "$dir/$as";
	append_to_file("$dir/$as", $bytes);
	chmod 0755, "$dir/$as" or die;
	return;
}
put_other('ag_pg.so', 'ag_pg.so');
copy("$lib/ag_trainer", "$dir/ag_trainer") && chmod(0755, "$dir/ag_trainer") or die "ag_trainer: $!";

my $node = PostgreSQL::Test::Cluster->new('builds');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nag_pg.num_cpus = 2\n");
$node->start;
my $has_stats = $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
make_data($node);
my $fit = sub { my ($name) = @_; return "SELECT ag_fit('small', 'y', '" . quick_options(qq{"name": "$name"}) . "')"; };
my $count = q{SELECT count(ag_predict('m', s)) FROM small s};
is($node->safe_psql('postgres', $fit->('m')), 'm', 'a fit by the first build');

# the other build is that of a copy of the database; of workers it is when they find it first
$node->safe_psql('postgres', 'CREATE DATABASE other TEMPLATE postgres');
$node->safe_psql('other', qq{UPDATE pg_proc SET probin = '$dir/ag_pg' WHERE probin LIKE '%ag\\_pg'});
# since 18 a path of libraries is searched for those of extensions too: the first build is to stay that of its database
$node->safe_psql('postgres', qq{UPDATE pg_proc SET probin = '$lib/ag_pg' WHERE probin LIKE '%ag\\_pg'});
my $old = $node->background_psql('postgres', on_error_stop => 0);
is($old->query($count), '300', 'a session of the first build predicts');
my ($rc, $out, $err);
sub by_other { my ($sql) = @_; ($rc, $out, $err) = $node->psql('other', $sql); return $out; }
is(by_other("SELECT ag_version(); $count"), ($build =~ s/\+.*//r) . "\n300", 'one of the other predicts');
by_other($fit->('n'));
like($err, qr/ERROR:  the library ag_pg was replaced after this session loaded it\nHINT:  Connect again\./, 'its fit meets a worker of the first build, and says so');

$node->append_conf('postgresql.conf', "dynamic_library_path = '$dir:\$libdir'\n");
$node->reload;
sleep 1;
by_other($fit->('n'));
like($err, qr/ERROR:  .*the program ag_trainer is of build \Q$build\E, the library of build \Q$other\E\nHINT:  Install both from one package/, 'a trainer of the first build is refused');
my $job = by_other($fit->('n') =~ s/ag_fit/ag_fit_async/r);
like(by_other("SELECT ag_wait($job, 30); SELECT message FROM ag_jobs WHERE id = $job"), qr/^failed\n.*of build/, 'by a job, too');
put_other('ag_trainer', 'ag_trainer');
is(by_other($fit->('n')), 'n', 'with a trainer of its own the other build fits') or diag($err);
$old->query($fit->('late'));
like($old->{stderr}, qr/ERROR:  the library ag_pg was replaced after this session loaded it\nHINT:  Connect again\./, 'a session that has the first build is told to connect again');
is($old->query($count), '300', 'and goes on to predict');
$old->{stderr} = '';
$old->query("LOAD '$dir/ag_pg'");
like($old->{stderr}, qr/ERROR:  the library ag_pg was replaced after this session loaded it\nHINT:  Connect again\./, 'the other build does not come into the same session');
$job = $old->query($fit->('by_job') =~ s/ag_fit/ag_fit_async/r);
is($old->query("SELECT ag_wait($job, 30)"), 'succeeded', 'its jobs run by the new one');

nothing_left($node, 'both builds');

SKIP:
{
	skip 'before 17 a server that is to have statistics preloads the library, and so has one build', 4 unless $has_stats;
	my $seen = "$count; SELECT shared_models, shared_hits, cache_misses, predictions FROM ag_stats";
	$node->safe_psql('postgres', 'SELECT ag_stats_reset()');
	by_other('SELECT ag_stats_reset()');
	is($node->safe_psql('postgres', $seen), "300\n1|1|0|300", 'sessions of the first build have their own counts, and one shared model');
	is(by_other($seen), "300\n1|1|0|300", 'so have those of the other');
	is($old->query($count), '300', 'the session that was there before predicts');
	is($old->query('SELECT predictions FROM ag_stats'), '600', 'and counts with its like');
}
$old->quit;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'nobody died of it');
$node->stop;
done_testing();
