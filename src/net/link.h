// One connection, seen from both sides: a Session is what a protocol does with the bytes, a Link is
// what it may ask of the connection. Both are used on the thread of their loop only, so neither
// locks anything.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace hapax::net {

class Loop;

class Link {
 public:
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Leaves at the end of the loop's turn, together with everything else that is sent until then.
  virtual void send(std::string_view bytes) = 0;
  // Closes once everything sent has left. Nothing more is read.
  virtual void finish() = 0;
  // The peer has until then; a later call replaces an earlier one.
  virtual void set_deadline(std::chrono::steady_clock::time_point deadline) = 0;
  virtual void clear_deadline() = 0;
  // Back-pressure: bytes stay in the kernel until resume().
  virtual void pause() = 0;
  virtual void resume() = 0;

  [[nodiscard]] virtual std::size_t unsent() const = 0;
  [[nodiscard]] virtual const std::string& peer() const = 0;  // "127.0.0.1:40112"
  [[nodiscard]] virtual bool encrypted() const = 0;
  [[nodiscard]] virtual Loop& loop() = 0;

 protected:
  ~Link() = default;
};

class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  // Takes what it can from the front and returns how much that was; the rest comes again, with
  // more behind it. The bytes are gone when it returns.
  virtual std::size_t take(std::string_view bytes) = 0;
  // The peer will send nothing more; answers may still be sent.
  virtual void half_closed() = 0;
  // Everything that was sent has left: whoever produces piece by piece goes on.
  virtual void sent() {}
  // The deadline passed: say so and finish(), or do nothing and be cut off.
  virtual void late() = 0;
  // The server stops: end what was begun, then finish().
  virtual void drain() = 0;
  // The connection is gone; the link must not be used any more.
  virtual void lost() = 0;
};

using MakeSession = std::function<std::shared_ptr<Session>(Link&)>;

// A thread with its connections.
class Loop {
 public:
  Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // From any thread: runs it on the loop's.
  virtual void post(std::function<void()> act) = 0;
  // On the loop's thread: runs it once when everything that is ready now has been handled.
  virtual void at_end_of_turn(std::function<void()> act) = 0;
  // On the loop's thread: runs it not before `when`, to about 50 ms.
  virtual void at(std::chrono::steady_clock::time_point when, std::function<void()> act) = 0;
  [[nodiscard]] virtual std::size_t number() const = 0;
  // N2: whether its sessions may hold it up, such as for a disk.
  [[nodiscard]] virtual bool may_wait() const = 0;

 protected:
  ~Loop() = default;
};

}  // namespace hapax::net
