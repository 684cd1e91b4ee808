// The steps of ../libraries_test.py with node-redis: HOST PORT TOKEN.
'use strict';
const assert = require('assert');
const readline = require('readline');
const {createClient} = require('redis');

const [host, port, token] = process.argv.slice(2);

// The map of a verdict, which RESP2 writes as names and values.
function told(reply) {
  const fields = {};
  for (let i = 0; i < reply.length; i += 2) fields[reply[i]] = reply[i + 1];
  return fields;
}

async function plainCommands(client) {
  assert.strictEqual(await client.set('claim', 'me', {NX: true, EX: 100}), 'OK');
  assert.strictEqual(await client.set('claim', 'other', {NX: true, EX: 100}), null);
  assert.strictEqual(await client.get('claim'), 'me');
  const ttl = await client.ttl('claim');
  assert(ttl > 0 && ttl <= 100, `${ttl}`);
  assert(await client.expire('claim', 1000));
  assert(await client.ttl('claim') > 100);
  assert.strictEqual(await client.incr('count'), 1);
  assert.strictEqual(await client.incrBy('count', 5), 6);
  await assert.rejects(client.incr('claim'), /not an integer/);
  await assert.rejects(client.lPush('list', 'x'), /unknown command 'LPUSH'/);
}

async function manyAtOnce(client) {
  const asked = [];
  for (let i = 0; i < 100; ++i) asked.push(client.set(`many:${i}`, `${i}`), client.incr('steps'));
  const replies = await Promise.all(asked);  // Commands of one tick are one pipeline.
  replies.forEach((reply, i) => assert.strictEqual(reply, i % 2 ? (i + 1) / 2 : 'OK'));
  const found = new Set();
  for await (const key of client.scanIterator({MATCH: 'many:*', COUNT: 7})) found.add(key);
  assert.strictEqual(found.size, 100);
  assert.deepStrictEqual(await client.multi().set('a', '1').incr('a').get('a').exec(),
                         ['OK', 2, '2']);
}

async function once(client) {
  const ask = async (...words) => told(await client.sendCommand(words));
  assert.strictEqual((await ask('HX.CREATE_STREAM', 'orders')).verdict, 'done');
  const first = await ask('HX.APPEND', 'orders', 'tea', 'ID', 'o-1');
  assert.deepStrictEqual([first.verdict, first.sequence], ['fresh', 1]);
  await appendAgain(client);
  const claim = await ask('HX.CLAIM', 'charge', 'o-1', 'OWNER', 'me');
  assert.strictEqual(claim.verdict, 'fresh');
  const settled = await ask('HX.SETTLE', 'charge', 'o-1', `${claim.fence}`, 'BODY', 'paid');
  assert.strictEqual(settled.verdict, 'done');
  const again = await ask('HX.CLAIM', 'charge', 'o-1', 'OWNER', 'other');
  assert.deepStrictEqual([again.verdict, again.body], ['duplicate', 'paid']);
}

async function appendAgain(client) {
  const again = told(await client.sendCommand(['HX.APPEND', 'orders', 'tea', 'ID', 'o-1']));
  assert.deepStrictEqual([again.verdict, again.sequence], ['duplicate', 1]);
}

async function dedup(client) {
  assert.strictEqual(await client.setNX('dedup:queue:job-123', 'processing'), true);
  assert.strictEqual(await client.setNX('dedup:queue:job-123', 'processing'), false);
  assert.strictEqual(await client.set('dedup:queue:job-123', 'completed', {EX: 3600}), 'OK');
}

async function main() {
  const heard = [];
  const onceOnly = {host, port, reconnectStrategy: () => new Error('not again')};
  const stranger = createClient({socket: onceOnly, password: 'wrong'});
  stranger.on('error', error => heard.push(error.message));
  await stranger.connect().catch(error => heard.push(error.message));
  assert.match(heard.join(), /WRONGPASS/);
  const client = createClient({socket: {host, port}, password: token, name: 'node-redis'});
  client.on('error', () => {});  // A lost connection is not the end: it comes back by itself.
  await client.connect();
  assert.strictEqual(await client.ping(), 'PONG');
  for (const steps of [plainCommands, manyAtOnce, once, dedup]) await steps(client);
  console.log('restart');
  const input = readline.createInterface({input: process.stdin});
  await new Promise(resolve => input.once('line', resolve));
  assert.strictEqual(await client.get('dedup:queue:job-123'), 'completed');
  assert(await client.ttl('dedup:queue:job-123') > 3000);
  await appendAgain(client);
  console.log('done');
  process.exit(0);
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
