# Bytes of models that somebody forged who knows how their checksums are made: the extension's owner, who may be no superuser. Whatever is in them, calls
# give an answer or an error, for a superuser too, and the server goes on.
#
# AG_FORGE_ROUNDS=1000 is the long mode, AG_FORGE_SEED=n repeats a run.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rounds = $ENV{AG_FORGE_ROUNDS} // 25;
my $seed = $ENV{AG_FORGE_SEED} // int(time);
srand $seed;
note "seed $seed";

# forge SEED N: an image in hexadecimal comes in; N forgeries of it go out, each "hexadecimal checksum". Most change a few bytes behind the frame, where
# numbers and offsets are; some cut, repeat or zero a piece.
my $dir = PostgreSQL::Test::Utils::tempdir();
append_to_file("$dir/forge.c", q~
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (4 << 20)

static uint64_t lo, hi, state;

static void
step(uint64_t value)
{
	unsigned __int128 product = (unsigned __int128) (lo ^ value) * UINT64_C(0xbb67ae8584caa73b);
	uint64_t next = (uint64_t) product ^ (hi << 23 | hi >> 41);

	hi = (hi + (uint64_t) (product >> 64)) * UINT64_C(0x3c6ef372fe94f82b) + lo;
	lo = next;
}

static uint64_t
checksum(const uint8_t *at, size_t n, uint64_t seed)
{
	static const uint64_t last[] = {UINT64_C(0x6a09e667f3bcc909), UINT64_C(0xa54ff53a5f1d36f1), UINT64_C(0x3c6ef372fe94f82b), UINT64_C(0x6a09e667f3bcc909)};
	uint64_t word;

	lo = seed ^ last[0];
	hi = (seed + n) * last[2] ^ last[1];
	for (; n > 0; at += n < 8 ? n : 8, n -= n < 8 ? n : 8)
	{
		word = 0;
		memcpy(&word, at, n < 8 ? n : 8);
		step(word);
	}
	for (int i = 0; i < 4; i++)
		step(last[i]);
	return lo ^ hi;
}

static uint64_t
draw(uint64_t n)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (state >> 33) % n;
}

static void
change(uint8_t *at, size_t n, size_t *size)
{
	static const uint64_t odd[] = {0, 1, 255, 256, 65535, INT32_MAX, UINT32_MAX, UINT64_C(1) << 32, INT64_MAX, UINT64_MAX, UINT64_C(0x7ff0000000000000), UINT64_C(0x7ff8000000000000), UINT64_C(0xfff0000000000000)};
	size_t first = draw(4) == 0 ? 0 : 64, place = first + draw(n - first), width = 1 << draw(4), from = draw(n), length = draw(200);

	place = width > 1 ? place / width * width : place;
	switch (draw(8))
	{
		case 0:
			memcpy(at + place, &odd[draw(sizeof odd / sizeof *odd)], place + width <= n ? width : n - place);
			break;
		case 1:
			memmove(at + place, at + from, place + length <= n && from + length <= n ? length : 0);
			break;
		case 2:
			memset(at + place, 0, place + length <= n ? length : 0);
			break;
		case 3:
			if (draw(8) == 0)
				*size = draw(n + 1);
			break;
		default:
			at[place] = draw(3) == 0 ? (uint8_t) draw(256) : at[place] ^ (uint8_t) (1 << draw(8));
			break;
	}
}

int
main(int argc, char **argv)
{
	static uint8_t image[MOST], copy[MOST];
	size_t n = 0;
	unsigned byte;

	state = strtoull(argv[1], NULL, 10);
	while (n < MOST && scanf("%2x", &byte) == 1)
		image[n++] = (uint8_t) byte;
	for (int i = 0; i <= atoi(argv[2]); i++) /* the first is unchanged */
	{
		size_t size = n;
		uint64_t sum;

		memcpy(copy, image, n);
		for (uint64_t c = i == 0 ? 0 : 1 + draw(4); c > 0; c--)
			change(copy, n, &size);
		if (size >= 64)
		{
			uint64_t kind = copy[12] | copy[13] << 8;

			memcpy(copy + 16, &size, draw(4) > 0 || i == 0 ? 8 : 0);
			sum = checksum(copy + 64, size - 64, kind);
			memcpy(copy + 24, &sum, 8);
		}
		for (size_t b = 0; b < size; b++)
			printf("%02x", copy[b]);
		printf(" %lld\n", (long long) checksum(copy, size, 0));
	}
	return argc < 3;
}
~);
system('cc', '-O1', '-o', "$dir/forge", "$dir/forge.c") == 0 or plan(skip_all => 'no C compiler');

my $node = PostgreSQL::Test::Cluster->new('forged');
$node->init;
# each statement reads the bytes
$node->append_conf('postgresql.conf', "fsync = off\nag_pg.num_cpus = 2\nag_pg.shared_model_cache_size = 0\nag_pg.model_cache_size = 0\n");
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE keeper LOGIN; CREATE DATABASE theirs OWNER keeper');
my $boot = boot();
sub boot { return $node->safe_psql('postgres', q{SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'}); }
sub as_keeper { return $node->safe_psql('theirs', $_[0], extra_params => [ '-U', 'keeper' ]); }
my $data = q{CREATE TABLE d AS SELECT i % 40 AS x, 'k' || i % 5 AS k, CASE WHEN i % 9 > 0 THEN date '2024-01-01' + i % 50 END AS day, 'some words of note ' || i % 17 || ' and ' || chr(97 + i % 11) || 'more' AS note,
	CASE WHEN i % 40 > 25 THEN 'ill' WHEN i % 40 > 12 THEN 'so' ELSE 'well' END AS y, i % 40 * 2.0 + i % 5 AS z FROM generate_series(1, 300) i};
my %models = (
	trees => [ 'z', '"hyperparameters": {"GBM": {"num_boost_round": 8}}' ],
	classes => [ 'y', '"hyperparameters": {"XT": {"n_estimators": 4, "max_leaf_nodes": 10}}' ],
	oblivious => [ 'y', '"hyperparameters": {"CAT": {"iterations": 4}}' ],
	line => [ 'z', '"hyperparameters": {"LR": {}}' ],
	neighbours => [ 'y', '"hyperparameters": {"KNN": {}}' ],
	net => [ 'z', '"hyperparameters": {"NN_TORCH": {"num_epochs": 1, "hidden_size": 8, "num_layers": 1}}' ],
	levels => [ 'z', '"hyperparameters": {"LR": {}, "GBM": {"num_boost_round": 3}}, "num_bag_folds": 2, "num_stack_levels": 1' ],
	quantiles => [ 'z', '"problem_type": "quantile", "hyperparameters": {"GBM": {"num_boost_round": 4}}' ]);
as_keeper("CREATE EXTENSION ag_pg; $data");
as_keeper(qq{SELECT ag_fit('SELECT x, k, day, note, $models{$_}[0] FROM d', '$models{$_}[0]', '{"name": "$_", "verbosity": 0, $models{$_}[1]}')}) for sort keys %models;

# what a superuser does with one
sub uses
{
	my ($name) = @_;
	my $label = $models{$name}[0];
	my $predict = $name eq 'quantiles' ? 'ag_predict_quantiles' : $label eq 'y' ? 'ag_predict_proba' : 'ag_predict';
	my @uses = ("count($predict('$name', d)::text) FROM d", "$predict('$name', '{\"x\": 1, \"note\": \"words of note 3\"}'::jsonb)", "count(*) FROM ag_predict_table('$name', 'd')", "length(ag_info('$name')::text)",
		"count(*) FROM ag_predict_oof('$name') o WHERE o::text <> ''", "count(*) FROM ag_leaderboard('$name')", "count(*) FROM ag_drift('$name', 'd')");
	push @uses, "count(*) FROM ag_explain('$name', '{\"x\": 1}'::jsonb)" if $name ne 'quantiles';
	push @uses, "length(ag_export('$name', '$_'))" for 'json', 'sql';
	push @uses, "length(ag_export_bytea('$name', 'onnx'))", "length(ag_report('$name', 'd'))";
	push @uses, "ag_predict_interval('$name', '{\"x\": 1}'::jsonb)" if $name =~ /trees|line/;
	return @uses;
}

my $n_refused = 0;
my $n_used = 0;
for my $name (sort keys %models)
{
	my @parts = split /\n/, $node->safe_psql('theirs', qq{SELECT predictor || '|' || member || '|' || encode(data, 'hex') FROM ag_member_part WHERE predictor = (SELECT id FROM ag_predictor WHERE name = '$name') ORDER BY member});
	my @uses = uses($name);
	for my $part (@parts)
	{
		my ($predictor, $member, $hex) = split /\|/, $part;
		append_to_file("$dir/image", $hex);
		my @forgeries = split /\n/, `"$dir/forge" $seed $rounds <"$dir/image"`;
		unlink "$dir/image";
		is(scalar(@forgeries), $rounds + 1, "$name, member $member: forgeries");
		my $sql = "\\set VERBOSITY verbose\nSET statement_timeout = 60000;\nSET client_min_messages = error;\n";
		for my $i (0 .. $#forgeries)
		{
			my ($bytes, $sum) = split / /, $forgeries[$i];
			$sql .= "BEGIN; SET LOCAL ROLE keeper; UPDATE ag_member_part SET data = decode('$bytes', 'hex'), checksum = $sum WHERE predictor = '$predictor' AND member = $member; RESET ROLE;\n";
			$sql .= join '', map { "SAVEPOINT s; SELECT 'used', $_; ROLLBACK TO s;\n" } $uses[0], $i == 0 ? () : map { $uses[ 1 + int rand $#uses ] } 1 .. 2;
			$sql .= "ROLLBACK;\n";
			$sql .= "\\echo begun\n" if $i == 0;
		}
		my ($out, $err) = ('', '');
		$node->psql('theirs', "$sql SELECT 'goes on'", stdout => \$out, stderr => \$err, on_error_stop => 0, timeout => 600);
		like($out, qr/^used\|300\nbegun$/m, "$name, member $member: the checksums are right") or diag($err);
		like($out, qr/^goes on$/m, "$name, member $member: whatever its bytes are, the session goes on") or diag(substr $err, -2000);
		unlike($out, qr/\bNaN\b/, "$name, member $member: no answer is NaN"); # an error may say that a number of the model is
		unlike($out . $err, qr/server closed|XX000|internal error|statement timeout/, "$name, member $member: answers or proper errors");
		$n_refused += () = $err =~ /ERROR:  XX001/g;
		$n_used += () = $out =~ /^used/mg;
	}
}
note "$n_refused refused, $n_used used";
cmp_ok($n_refused, '>', $rounds, 'many are refused');
cmp_ok($n_used, '>', $rounds, 'many make other models');
is(boot(), $boot, 'the server never went down');
$node->stop;
done_testing();
