// The steps of ../libraries_test.py with hiredis: HOST PORT TOKEN.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

static redisContext* context;

static void demand(int holds, int line) {
  if (holds) return;
  fprintf(stderr, "hiredis.c:%d does not hold; %s\n", line, context ? context->errstr : "");
  exit(1);
}
#define DEMAND(holds) demand((holds), __LINE__)

// The reply belongs to the caller until the next call.
static redisReply* ask(const char* format, ...) {
  static redisReply* reply;
  if (reply) freeReplyObject(reply);
  va_list words;
  va_start(words, format);
  reply = redisvCommand(context, format, words);
  va_end(words);
  DEMAND(reply != NULL);
  return reply;
}

static int is_text(const redisReply* reply, const char* text) {
  const int kind = reply->type;
  return (kind == REDIS_REPLY_STRING || kind == REDIS_REPLY_STATUS) && !strcmp(reply->str, text);
}

static int is_number(const redisReply* reply, long long low, long long high) {
  return reply->type == REDIS_REPLY_INTEGER && reply->integer >= low && reply->integer <= high;
}

static int is_error(const redisReply* reply, const char* part) {
  return reply->type == REDIS_REPLY_ERROR && strstr(reply->str, part) != NULL;
}

// The value behind a name in the map of a verdict, which RESP2 writes as names and values.
static const redisReply* told(const redisReply* reply, const char* name) {
  DEMAND(reply->type == REDIS_REPLY_ARRAY);
  for (size_t i = 0; i + 1 < reply->elements; i += 2) {
    if (is_text(reply->element[i], name)) return reply->element[i + 1];
  }
  DEMAND(0);
  return NULL;
}

static void plain_commands(void) {
  DEMAND(is_text(ask("SET claim me NX EX 100"), "OK"));
  DEMAND(ask("SET claim other NX EX 100")->type == REDIS_REPLY_NIL);
  DEMAND(is_text(ask("GET claim"), "me"));
  DEMAND(is_number(ask("TTL claim"), 1, 100));
  DEMAND(is_number(ask("EXPIRE claim 1000"), 1, 1));
  DEMAND(is_number(ask("TTL claim"), 101, 1000));
  DEMAND(is_number(ask("INCR count"), 1, 1));
  DEMAND(is_number(ask("INCRBY count 5"), 6, 6));
  DEMAND(is_error(ask("INCR claim"), "not an integer"));
  DEMAND(is_error(ask("LPUSH list x"), "unknown command 'LPUSH'"));
  const char bytes[] = "a\0b\r\n";
  DEMAND(is_text(ask("SET bytes %b", bytes, sizeof bytes), "OK"));
  const redisReply* reply = ask("GET bytes");
  DEMAND(reply->len == sizeof bytes && !memcmp(reply->str, bytes, sizeof bytes));
}

static void many_at_once(void) {
  for (int i = 0; i < 100; ++i) {
    redisAppendCommand(context, "SET many:%d %d", i, i);
    redisAppendCommand(context, "INCR steps");
  }
  for (int i = 0; i < 200; ++i) {
    redisReply* reply = NULL;
    DEMAND(redisGetReply(context, (void**)&reply) == REDIS_OK);
    DEMAND(i % 2 ? is_number(reply, i / 2 + 1, i / 2 + 1) : is_text(reply, "OK"));
    freeReplyObject(reply);
  }
  char cursor[32] = "0";
  size_t found = 0;
  do {
    const redisReply* page = ask("SCAN %s MATCH many:* COUNT 7", cursor);
    DEMAND(page->type == REDIS_REPLY_ARRAY && page->elements == 2);
    found += page->element[1]->elements;
    snprintf(cursor, sizeof cursor, "%s", page->element[0]->str);
  } while (strcmp(cursor, "0") != 0);
  DEMAND(found >= 100);
  DEMAND(is_text(ask("MULTI"), "OK"));
  DEMAND(is_text(ask("SET a 1"), "QUEUED"));
  DEMAND(is_text(ask("INCR a"), "QUEUED"));
  const redisReply* replies = ask("EXEC");
  DEMAND(replies->elements == 2 && is_number(replies->element[1], 2, 2));
}

static void once(void) {
  DEMAND(is_text(told(ask("HX.CREATE_STREAM orders"), "verdict"), "done"));
  const redisReply* reply = ask("HX.APPEND orders tea ID o-1");
  DEMAND(is_text(told(reply, "verdict"), "fresh") && is_number(told(reply, "sequence"), 1, 1));
  reply = ask("HX.APPEND orders tea ID o-1");
  DEMAND(is_text(told(reply, "verdict"), "duplicate") && is_number(told(reply, "sequence"), 1, 1));
  reply = ask("HX.CLAIM charge o-1 OWNER me");
  DEMAND(is_text(told(reply, "verdict"), "fresh"));
  const long long fence = told(reply, "fence")->integer;
  DEMAND(is_text(told(ask("HX.SETTLE charge o-1 %lld BODY paid", fence), "verdict"), "done"));
  reply = ask("HX.CLAIM charge o-1 OWNER other");
  DEMAND(is_text(told(reply, "verdict"), "duplicate") && is_text(told(reply, "body"), "paid"));
}

static void dedup(void) {
  DEMAND(is_number(ask("SETNX dedup:queue:job-123 processing"), 1, 1));
  DEMAND(is_number(ask("SETNX dedup:queue:job-123 processing"), 0, 0));
  DEMAND(is_text(ask("SET dedup:queue:job-123 completed EX 3600"), "OK"));
}

int main(int argc, char** argv) {
  DEMAND(argc == 4);
  context = redisConnect(argv[1], atoi(argv[2]));
  DEMAND(context && !context->err);
  DEMAND(is_error(ask("PING"), "NOAUTH"));
  DEMAND(is_error(ask("AUTH wrong"), "WRONGPASS"));
  DEMAND(is_text(ask("AUTH %s", argv[3]), "OK"));
  DEMAND(is_text(ask("PING"), "PONG"));
  plain_commands();
  many_at_once();
  once();
  dedup();
  puts("restart");
  fflush(stdout);
  getchar();
  DEMAND(redisCommand(context, "PING") == NULL);
  DEMAND(redisReconnect(context) == REDIS_OK);
  DEMAND(is_text(ask("AUTH %s", argv[3]), "OK"));
  DEMAND(is_text(ask("GET dedup:queue:job-123"), "completed"));
  DEMAND(is_number(ask("TTL dedup:queue:job-123"), 3000, 3600));
  const redisReply* reply = ask("HX.APPEND orders tea ID o-1");
  DEMAND(is_text(told(reply, "verdict"), "duplicate") && is_number(told(reply, "sequence"), 1, 1));
  puts("done");
  return 0;
}
