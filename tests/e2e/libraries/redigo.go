// The steps of ../libraries_test.py with redigo: HOST PORT TOKEN.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

type told struct {
	Verdict  string `redis:"verdict"`
	Sequence int    `redis:"sequence"`
	Fence    int    `redis:"fence"`
	Body     string `redis:"body"`
}

func demand(holds bool, what ...interface{}) {
	if !holds {
		log.Panic(what...)
	}
}

func text(c redis.Conn, command string, words ...interface{}) string {
	got, err := redis.String(c.Do(command, words...))
	demand(err == nil, command, words, err)
	return got
}

func number(c redis.Conn, command string, words ...interface{}) int {
	got, err := redis.Int(c.Do(command, words...))
	demand(err == nil, command, words, err)
	return got
}

func verdict(c redis.Conn, command string, words ...interface{}) (one told) {
	values, err := redis.Values(c.Do(command, words...))
	demand(err == nil, command, words, err)
	demand(redis.ScanStruct(values, &one) == nil, command, values)
	return one
}

func refused(c redis.Conn, part, command string, words ...interface{}) {
	_, err := c.Do(command, words...)
	demand(err != nil && strings.Contains(err.Error(), part), command, words, err)
}

func plainCommands(c redis.Conn) {
	demand(text(c, "SET", "claim", "me", "NX", "EX", 100) == "OK")
	_, err := redis.String(c.Do("SET", "claim", "other", "NX", "EX", 100))
	demand(err == redis.ErrNil, err)
	demand(text(c, "GET", "claim") == "me")
	ttl := number(c, "TTL", "claim")
	demand(ttl > 0 && ttl <= 100, ttl)
	demand(number(c, "EXPIRE", "claim", 1000) == 1)
	demand(number(c, "TTL", "claim") > 100)
	demand(number(c, "INCR", "count") == 1)
	demand(number(c, "INCRBY", "count", 5) == 6)
	refused(c, "not an integer", "INCR", "claim")
	refused(c, "unknown command 'LPUSH'", "LPUSH", "list", "x")
}

func manyAtOnce(c redis.Conn) {
	for i := 0; i < 100; i++ {
		c.Send("SET", fmt.Sprintf("many:%d", i), i)
		c.Send("INCR", "steps")
	}
	c.Flush()
	for i := 0; i < 100; i++ {
		ok, err := redis.String(c.Receive())
		demand(ok == "OK" && err == nil, ok, err)
		step, err := redis.Int(c.Receive())
		demand(step == i+1 && err == nil, step, err)
	}
	cursor, found := 0, map[string]bool{}
	for {
		page, err := redis.Values(c.Do("SCAN", cursor, "MATCH", "many:*", "COUNT", 7))
		demand(err == nil && len(page) == 2, page, err)
		cursor, _ = redis.Int(page[0], nil)
		keys, _ := redis.Strings(page[1], nil)
		for _, key := range keys {
			found[key] = true
		}
		if cursor == 0 {
			break
		}
	}
	demand(len(found) == 100, len(found))
	c.Send("MULTI")
	c.Send("SET", "a", 1)
	c.Send("INCR", "a")
	replies, err := redis.Values(c.Do("EXEC"))
	demand(err == nil && len(replies) == 2 && replies[1] == int64(2), replies, err)
}

func once(c redis.Conn) {
	demand(verdict(c, "HX.CREATE_STREAM", "orders").Verdict == "done")
	demand(verdict(c, "HX.APPEND", "orders", "tea", "ID", "o-1") == told{"fresh", 1, 0, ""})
	again := verdict(c, "HX.APPEND", "orders", "tea", "ID", "o-1")
	demand(again.Verdict == "duplicate" && again.Sequence == 1, again)
	claim := verdict(c, "HX.CLAIM", "charge", "o-1", "OWNER", "me")
	demand(claim.Verdict == "fresh", claim)
	settled := verdict(c, "HX.SETTLE", "charge", "o-1", claim.Fence, "BODY", "paid")
	demand(settled.Verdict == "done", settled)
	again = verdict(c, "HX.CLAIM", "charge", "o-1", "OWNER", "other")
	demand(again.Verdict == "duplicate" && again.Body == "paid", again)
}

func dedup(c redis.Conn) {
	demand(number(c, "SETNX", "dedup:queue:job-123", "processing") == 1)
	demand(number(c, "SETNX", "dedup:queue:job-123", "processing") == 0)
	demand(text(c, "SET", "dedup:queue:job-123", "completed", "EX", 3600) == "OK")
}

func afterwards(c redis.Conn) {
	demand(text(c, "GET", "dedup:queue:job-123") == "completed")
	ttl := number(c, "TTL", "dedup:queue:job-123")
	demand(ttl > 3000 && ttl <= 3600, ttl)
	again := verdict(c, "HX.APPEND", "orders", "tea", "ID", "o-1")
	demand(again.Verdict == "duplicate" && again.Sequence == 1, again)
}

func main() {
	address, token := os.Args[1]+":"+os.Args[2], os.Args[3]
	_, err := redis.Dial("tcp", address, redis.DialPassword("wrong"))
	demand(err != nil && strings.Contains(err.Error(), "WRONGPASS"), err)
	pool := &redis.Pool{
		MaxIdle: 1,
		Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", address, redis.DialPassword(token),
				redis.DialClientName("redigo"))
		},
		TestOnBorrow: func(c redis.Conn, _ time.Time) error {
			_, err := c.Do("PING")
			return err
		},
	}
	c := pool.Get()
	demand(text(c, "PING") == "PONG")
	plainCommands(c)
	manyAtOnce(c)
	once(c)
	dedup(c)
	c.Close()
	fmt.Println("restart")
	bufio.NewReader(os.Stdin).ReadString('\n')
	afterwards(pool.Get())
	fmt.Println("done")
}
