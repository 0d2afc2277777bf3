/*
 * base.c - memory, errors, bytes, hashes, clipping of texts.
 */
#include <float.h>

#include "engine/base/bytes.h"
#include "engine/base/context.h"
#include "engine/base/hash.h"
#include "engine/base/rng.h"
#include "engine/data/schema.h"
#include "unit/unit.h"

static void
test_mem(void)
{
	AgMem mem;
	char *a, *b;

	ag_mem_init(&mem, 10000);
	a = ag_mem_zalloc(&mem, 10, 100);
	AG_REQUIRE(a != NULL);
	AG_CHECK_EQ((uintptr_t) a % 64, 0);
	for (int i = 0; i < 1000; i++)
		AG_CHECK(a[i] == 0);
	memset(a, 7, 1000);
	AG_CHECK(mem.used_bytes >= 1000 && mem.used_bytes < 1300);
	AG_CHECK(ag_mem_alloc(&mem, 9000, 1) == NULL);
	AG_CHECK(ag_mem_alloc(&mem, SIZE_MAX / 2, 4) == NULL);
	AG_CHECK(ag_mem_alloc(&mem, SIZE_MAX, 1) == NULL);
	AG_CHECK(ag_mem_realloc(&mem, a, 20000, 1) == NULL);
	b = ag_mem_realloc(&mem, a, 5000, 1);
	AG_REQUIRE(b != NULL);
	AG_CHECK_EQ((uintptr_t) b % 64, 0);
	for (int i = 0; i < 1000; i++)
		AG_CHECK(b[i] == 7);
	b = ag_mem_realloc(&mem, b, 10, 1);
	AG_CHECK(b != NULL && b[9] == 7);
	AG_CHECK(mem.peak_bytes >= 5000 && mem.used_bytes < 300);
	ag_mem_free(&mem, b);
	ag_mem_free(&mem, NULL);
	AG_CHECK_EQ(mem.used_bytes, 0);
	a = ag_mem_alloc(&mem, 0, 8);
	AG_CHECK(a != NULL);
	ag_mem_free(&mem, a);
	a = ag_mem_strdup(&mem, "text");
	AG_CHECK_STR(a, "text");
	ag_mem_free(&mem, a);
	AG_CHECK_EQ(mem.used_bytes, 0);
}

static void
test_big_realloc(void)
{
	AgMem mem;
	uint8_t *block = NULL;
	size_t old = 0;

	ag_mem_init(&mem, INT64_MAX);
	for (size_t n = 100; n < 8 << 20; n = n * 3 / 2 + 1)
	{
		block = ag_mem_realloc(&mem, block, n, 1);
		AG_REQUIRE(block != NULL && (uintptr_t) block % 64 == 0);
		for (size_t i = 0; i < old; i += 97)
			AG_REQUIRE(block[i] == (uint8_t) (i * 31));
		for (size_t i = 0; i < n; i++)
			block[i] = (uint8_t) (i * 31);
		old = n;
	}
	ag_mem_free(&mem, block);
	AG_CHECK_EQ(mem.used_bytes, 0);
}

static void
test_fail_after(void)
{
	AgMem mem;
	void *block;

	ag_mem_init(&mem, INT64_MAX);
	mem.fail_after = 1;
	block = ag_mem_alloc(&mem, 1, 1);
	AG_CHECK(block != NULL);
	AG_CHECK(ag_mem_alloc(&mem, 1, 1) == NULL);
	AG_CHECK(ag_mem_realloc(&mem, block, 100, 1) == NULL);
	AG_CHECK_EQ(mem.n_allocations, 3);
	mem.fail_after = -1;
	ag_mem_free(&mem, block);
}

static void
test_arena(void)
{
	AgMem mem;
	AgArena arena;
	char *text;

	ag_mem_init(&mem, INT64_MAX);
	ag_arena_init(&arena, &mem);
	for (size_t n = 0; n < 3000; n += 7)
	{
		uint8_t *block = ag_arena_alloc(&arena, n, 1);

		AG_REQUIRE(block != NULL && (uintptr_t) block % 16 == 0);
		for (size_t i = 0; i < n; i++)
			AG_REQUIRE(block[i] == 0);
		memset(block, 0xff, n);
	}
	AG_CHECK(ag_arena_alloc(&arena, SIZE_MAX, 2) == NULL);
	AG_CHECK(ag_arena_alloc(&arena, PTRDIFF_MAX - 128, 1) == NULL);
	text = ag_arena_strndup(&arena, "abcdef", 3);
	AG_CHECK_STR(text, "abc");
	ag_arena_free(&arena);
	AG_CHECK_EQ(mem.used_bytes, 0);
	ag_arena_free(&arena);
	ag_mem_init(&mem, 100);
	ag_arena_init(&arena, &mem);
	AG_CHECK(ag_arena_alloc(&arena, 1, 1) == NULL);
	ag_arena_free(&arena);
}

static void
test_error(void)
{
	AgError err;
	char text[3000];

	ag_error_init(&err);
	ag_error_hint(&err, "Nothing yet.");
	AG_CHECK_STR(err.hint, "");
	AG_CHECK_EQ(ag_error_set(&err, AG_ERR_DATA, "first %d", 1), AG_ERR_DATA);
	AG_CHECK_EQ(ag_error_set(&err, AG_ERR_MEMORY, "second"), AG_ERR_DATA);
	AG_CHECK_STR(err.message, "first 1");
	ag_error_hint(&err, "A hint.");
	AG_CHECK_STR(err.hint, "A hint.");
	AG_CHECK_EQ(ag_error_set(NULL, AG_ERR_VALUE, "nobody"), AG_ERR_VALUE);
	/* Cut in the middle of every character there is: never a half one. */
	for (size_t lead = 0; lead < 8; lead++)
	{
		size_t n = lead;

		memset(text, 'x', lead);
		while (n < sizeof text - 16)
		{
			memcpy(text + n, "ä€😀", 9);
			n += 9;
		}
		text[n] = '\0';
		ag_error_init(&err);
		ag_error_set(&err, AG_ERR_DATA, "%s", text);
		n = strlen(err.message);
		AG_CHECK(n > 1000 && n < sizeof err.message && strncmp(text, err.message, n) == 0);
		AG_CHECK(((unsigned char) text[n] & 0xc0) != 0x80);
	}
	AG_CHECK_EQ(ag_utf8_clip("abc", 3, 10), 3);
	AG_CHECK_EQ(ag_utf8_clip("aä", 3, 2), 1);
	AG_CHECK_EQ(ag_utf8_clip("\x80\x80\x80\x80\x80\x80", 6, 5), 5);
}

static void
test_mem_error(void)
{
	AgMem mem;
	AgError err;

	ag_mem_init(&mem, 64 << 20);
	ag_error_init(&err);
	AG_CHECK_EQ(ag_mem_error(&mem, 5000, &err), AG_ERR_MEMORY);
	AG_CHECK_STR(err.message, "out of memory");
	AG_CHECK(strstr(err.detail, "5 kB were needed") != NULL);
	AG_CHECK(strstr(err.detail, "64 MB") != NULL);
	AG_CHECK(strstr(err.hint, "memory_limit") != NULL);
	AG_CHECK_EQ(ag_mem_error(&mem, 5000, NULL), AG_ERR_MEMORY);
}

static void
test_bytes(void)
{
	AgMem mem;
	AgWriter w;
	AgReader r;
	uint32_t n;
	const char *text;

	ag_mem_init(&mem, INT64_MAX);
	ag_writer_init(&w, &mem);
	ag_write_u8(&w, 200);
	ag_write_u16(&w, 60000);
	ag_write_u32(&w, 4000000000u);
	ag_write_u64(&w, UINT64_MAX - 1);
	ag_write_i32(&w, INT32_MIN);
	ag_write_i64(&w, INT64_MIN);
	ag_write_f64(&w, -0.0);
	ag_write_text(&w, "a\0b", 3);
	ag_write_str(&w, NULL);
	ag_write_align(&w, 64);
	AG_CHECK(!w.failed && w.size == 64);
	for (size_t size = 0; size <= w.size; size++)
	{
		uint8_t *copy = malloc(size + 1); /* so that ASan sees the end */

		memcpy(copy, w.data, size);
		ag_reader_init(&r, copy, size);
		(void) ag_read_u8(&r);
		(void) ag_read_u16(&r);
		(void) ag_read_u32(&r);
		(void) ag_read_u64(&r);
		(void) ag_read_i32(&r);
		(void) ag_read_i64(&r);
		(void) ag_read_f64(&r);
		text = ag_read_text(&r, &n);
		AG_CHECK(r.failed == (size < 42));
		AG_CHECK(r.failed ? text == NULL && n == 0 : n == 3 && memcmp(text, "a\0b", 3) == 0);
		free(copy);
	}
	ag_reader_init(&r, w.data, w.size);
	AG_CHECK_EQ(ag_read_u8(&r), 200);
	AG_CHECK_EQ(ag_read_u16(&r), 60000);
	AG_CHECK_EQ(ag_read_u32(&r), 4000000000u);
	AG_CHECK(ag_read_u64(&r) == UINT64_MAX - 1);
	AG_CHECK_EQ(ag_read_i32(&r), INT32_MIN);
	AG_CHECK_EQ(ag_read_i64(&r), INT64_MIN);
	AG_CHECK(signbit(ag_read_f64(&r)));
	(void) ag_read_text(&r, &n);
	AG_CHECK(ag_read_text(&r, &n) != NULL && n == 0);
	AG_CHECK(!ag_reader_done(&r));
	(void) ag_read_bytes(&r, ag_reader_left(&r));
	AG_CHECK(ag_reader_done(&r));
	/* A count larger than the rest of the bytes can hold is refused. */
	ag_reader_init(&r, "\x05\0\0\0abcd", 8);
	AG_CHECK_EQ(ag_read_count(&r, 1), 0);
	AG_CHECK(r.failed);
	ag_writer_free(&w);
	ag_mem_init(&mem, 1000);
	ag_writer_init(&w, &mem);
	for (int i = 0; i < 1000; i++)
		ag_write_u64(&w, 1);
	AG_CHECK(w.failed && w.size < 1000);
	ag_writer_free(&w);
	AG_CHECK_EQ(mem.used_bytes, 0);
}

/* Every input bit turns every output bit about half of the time; buckets fill evenly. */
static void
test_hash(void)
{
	enum
	{
		TRIALS = 400
	};
	static int buckets[1024];
	uint8_t text[24];
	int worst = 0;

	for (int bit = 0; bit < 24 * 8; bit++)
	{
		int turned[128] = {0};

		for (int trial = 0; trial < TRIALS; trial++)
		{
			AgHash128 a, b;

			for (int i = 0; i < 24; i++)
				text[i] = (uint8_t) ag_random_u64(1, (uint64_t) (trial * 24 + i));
			a = ag_hash128(text, 24, 5);
			text[bit / 8] ^= (uint8_t) (1 << bit % 8);
			b = ag_hash128(text, 24, 5);
			for (int i = 0; i < 64; i++)
			{
				turned[i] += (int) ((a.lo ^ b.lo) >> i & 1);
				turned[64 + i] += (int) ((a.hi ^ b.hi) >> i & 1);
			}
		}
		for (int i = 0; i < 128; i++)
			if (abs(turned[i] - TRIALS / 2) > worst)
				worst = abs(turned[i] - TRIALS / 2);
	}
	AG_CHECK(worst < 60); /* six standard deviations */

	/* Numbers counting up, folded: the upper bits order rows, so they must be spread. */
	for (uint64_t i = 0; i < 1 << 18; i++)
	{
		AgHash128 hash = {0, 0};

		buckets[ag_hash128_fold(hash, i).hi >> 54]++;
	}
	worst = 0;
	for (int i = 0; i < 1024; i++)
		if (abs(buckets[i] - 256) > worst)
			worst = abs(buckets[i] - 256);
	AG_CHECK(worst < 6 * 16);
	AG_CHECK(ag_hash64("", 0, 0) != ag_hash64("\0", 1, 0));
	AG_CHECK(ag_hash64("abc", 3, 0) != ag_hash64("abc", 3, 1));
	/* Part of the formats: never to change. */
	AG_CHECK(ag_hash64("ag_pg", 5, 1) == UINT64_C(0x27404eec4b9e4e51));
	AG_CHECK(ag_hash128("0123456789abcdefg", 17, 2).hi == UINT64_C(0xf0e3f998621eb5a1));
	{
		AgHash128 hash = {1, 2};

		AG_CHECK(ag_hash128_fold(hash, 3).lo == UINT64_C(0x07ee1c04a8c37e70));
	}
}

static void
test_clip(void)
{
	static char text[AG_TEXT_MAX + 100];
	static char buffer[AG_TEXT_MAX], other[AG_TEXT_MAX];
	uint32_t n, n_other;

	memset(text, 'x', sizeof text);
	AG_CHECK(ag_text_clip(text, AG_TEXT_MAX, buffer, &n) == text && n == AG_TEXT_MAX);
	AG_CHECK(ag_text_clip(text, AG_TEXT_MAX + 1, buffer, &n) == buffer && n <= AG_TEXT_MAX);
	AG_CHECK(buffer[n - 33] == '#');
	AG_CHECK(ag_text_clip(text, AG_TEXT_MAX + 2, other, &n_other) == other);
	AG_CHECK(n == n_other && memcmp(buffer, other, n) != 0);
	text[AG_TEXT_MAX] = 'y';
	(void) ag_text_clip(text, AG_TEXT_MAX + 1, other, &n_other);
	AG_CHECK(memcmp(buffer, other, n) != 0);
	memset(text, 'x', sizeof text);
	memcpy(text + AG_TEXT_MAX - 34, "€", 3);
	(void) ag_text_clip(text, AG_TEXT_MAX + 1, buffer, &n);
	AG_CHECK_EQ(n, AG_TEXT_MAX - 1);
	AG_CHECK(buffer[n - 34] == 'x');
}

static char logged[8192];

static void
keep_line(void *host, AgLogLevel level, const char *text, const char *hint)
{
	(void) host;
	snprintf(logged, sizeof logged, "%d %s %s", (int) level, text, hint ? hint : "-");
}

static void
test_context(void)
{
	AgMem mem;
	AgError err;
	_Atomic bool cancel = false;
	AgContext ctx = {.mem = &mem, .cancel = &cancel, .deadline_ns = INT64_MAX, .error = &err};
	char *block;
	static char longer[6000];

	ag_mem_init(&mem, 4096);
	ag_error_init(&err);
	AG_CHECK_EQ(ag_get_zeroed(&ctx, 4, 4, &block), AG_OK);
	ag_mem_free(&mem, block);
	AG_CHECK_EQ(ag_get(&ctx, SIZE_MAX, 16, &block), AG_ERR_MEMORY);
	AG_CHECK(block == NULL && err.status == AG_ERR_MEMORY);
	ag_error_init(&err);
	AG_CHECK_EQ(ag_check_cancel(&ctx), AG_OK);
	cancel = true;
	AG_CHECK_EQ(ag_check_cancel(&ctx), AG_ERR_CANCELLED);
	AG_CHECK(!ag_out_of_time(&ctx));
	ctx.deadline_ns = ag_clock_ns() - 1;
	AG_CHECK(ag_out_of_time(&ctx));
	ag_log(&ctx, AG_LOG_NORMAL, "nobody listens");
	ag_progress(&ctx, "phase", 0.5);
	ctx.log = keep_line;
	ag_log_hint(&ctx, AG_LOG_SUMMARY, "Do this.", "%d rows", 3);
	AG_CHECK_STR(logged, "1 3 rows Do this.");
	memset(longer, 'x', sizeof longer - 1);
	ag_log(&ctx, AG_LOG_WARNING, "%s", longer);
	AG_CHECK(strlen(logged) > 4000 && strlen(logged) < 4110);
}

int
main(void)
{
	test_mem();
	test_big_realloc();
	test_fail_after();
	test_arena();
	test_error();
	test_mem_error();
	test_bytes();
	test_hash();
	test_clip();
	test_context();
	return ag_unit_done("base");
}
