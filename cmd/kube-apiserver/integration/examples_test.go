package integration

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// worlds are a controller and a user, each at one API server.
var worlds = []struct{ watches, deletes string }{{"ours", "ours"}, {"stock", "stock"}, {"ours", "stock"}, {"stock", "ours"}}

// inWorlds runs a test in the first worlds, with a controller of its own in each.
func inWorlds(t *testing.T, count int, program string, test func(e *example)) {
	t.Helper()
	for _, world := range worlds[:count] {
		t.Run("controller at "+world.watches+", deleted at "+world.deletes, func(t *testing.T) {
			test(newExample(t, program, world.watches, world.deletes))
		})
	}
}

// A guest that ignores ACPI, and one that takes no time.
func ignoring() map[string]any {
	return map[string]any{"terminationGracePeriodSeconds": 600, "guest": map[string]any{"ignoresACPI": true}}
}

func quick() map[string]any {
	return map[string]any{"terminationGracePeriodSeconds": 600, "guest": map[string]any{"shutdownSeconds": 0}}
}

// A plain deletion waits for the default of the object, a forced one for nothing, also one that was plain before.
func TestControllerTellsPlainFromForced(t *testing.T) {
	inWorlds(t, 4, "virtual-machine", func(e *example) {
		e.create("plain", ignoring())
		e.create("forced", ignoring())
		plain := e.pid("plain")
		e.delete("plain")
		e.awaitEvent("plain", "ShutdownRequested: ")
		e.delete("forced", "--force")
		e.awaitGone("forced")
		e.t.Log(e.awaitEvent("forced", "PoweredOff: forced: the deletion is forced"))
		if event := e.awaitEvent("plain", "ShutdownRequested: "); !strings.HasSuffix(event, "by spec.terminationGracePeriodSeconds") {
			e.t.Error(event)
		}
		if object := e.get("plain"); object == nil || deadline.Of(object).Kind() != deadline.Unspecified || !e.runs(plain) {
			e.t.Errorf("the guest of a plain deletion runs: %t, object %v", e.runs(plain), object)
		}
		e.delete("plain", "--force")
		e.awaitGone("plain")
		if e.runs(plain) {
			e.t.Error("the guest runs without its object")
		}
		e.t.Log(e.events("plain"))
	})
}

// offInTime wants the guest off within a second of its deadline, and not before. On a busy machine the second begins with
// the answer to a request that the test sends at the deadline: the controller sends one, too.
func (e *example) offInTime(name string, end time.Time) {
	e.t.Helper()
	if end.IsZero() {
		e.t.Fatalf("%s got no deadline", name)
	}
	guest, reader := e.pid(name), serverOf(e.t, e.watches)
	var off, answered time.Time
	wait(e.t, func() error {
		if off.IsZero() && !e.runs(guest) {
			off = time.Now()
		}
		if answered.IsZero() && !time.Now().Before(end) {
			reader.do(e.t, http.MethodGet, e.path(e.host+name), asJSON, nil)
			answered = time.Now()
		}
		if off.IsZero() || answered.IsZero() {
			return fmt.Errorf("the guest of %s runs, its deadline is %v", name, end)
		}
		return nil
	})
	gone := e.awaitGone(name)
	e.t.Logf("%s is off %v and gone %v after its deadline, the test had its answer after %v: %q", name, off.Sub(end),
		gone.Sub(end), answered.Sub(end), e.events(name))
	if off.Before(end) || off.Sub(answered) > time.Second {
		e.t.Errorf("%s is off %v after its deadline", name, off.Sub(end))
	}
}

func TestGuestIsOffAtDeadlineOfUser(t *testing.T) {
	inWorlds(t, 4, "virtual-machine", func(e *example) {
		for _, name := range []string{"ignores", "shortened", "away", "early"} {
			spec := ignoring()
			if name == "early" {
				spec = quick()
			}
			e.create(name, spec)
		}
		e.offInTime("ignores", e.delete("ignores", "--grace-period=3"))
		e.awaitEvent("ignores", "PoweredOff: forced: the guest ran until its deadline")

		e.delete("shortened", "--grace-period=300")
		e.awaitEvent("shortened", "ShutdownRequested: ")
		end := e.delete("shortened", "--grace-period=3")
		e.awaitEvent("shortened", "DeadlineMoved: ")
		e.offInTime("shortened", end)

		e.delete("early", "--grace-period=300")
		e.awaitGone("early")
		e.t.Log(e.awaitEvent("early", "PoweredOff: clean"))

		guest := e.pid("away")
		e.kill()
		<-time.After(time.Until(e.delete("away", "--grace-period=1")))
		if !e.runs(guest) || e.get("away") == nil {
			e.t.Error("the guest has ended without its controller")
		}
		e.start()
		started := time.Now()
		e.t.Logf("gone %v after the start of the controller: %q", e.awaitGone("away").Sub(started).Round(time.Millisecond),
			e.events("away"))
		e.awaitEvent("away", "PoweredOff: forced: the guest ran until its deadline")
	})
}

// A controller that is killed and started again finds its guest, and starts no second one.
func TestGuestOutlivesControllerAndIsFound(t *testing.T) {
	inWorlds(t, 2, "virtual-machine", func(e *example) {
		e.create("a", ignoring())
		guest := e.pid("a")
		e.kill()
		if !e.runs(guest) {
			e.t.Fatal("the guest ends with its controller")
		}
		e.start()
		e.delete("a", "--grace-period=300")
		e.awaitEvent("a", fmt.Sprintf("ShutdownRequested: process %d has until ", guest))
		e.kill()
		e.start()
		e.delete("a", "--force")
		e.awaitGone("a")
		if e.runs(guest) {
			e.t.Error("the guest runs without its object")
		}
		if started := strings.Count(strings.Join(e.events("a"), "\n"), "Started: "); started != 1 {
			e.t.Errorf("%d guests were started: %q", started, e.events("a"))
		}
	})
}

// client is a session of a database.
type client struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, port int) client {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return client{t, conn, bufio.NewReader(conn)}
}

// says sends a line and wants an answer.
func (c client) says(line, want string) {
	c.t.Helper()
	if line != "" {
		if _, err := fmt.Fprintln(c.conn, line); err != nil {
			c.t.Fatal(err)
		}
	}
	if got, err := c.lines.ReadString('\n'); err != nil || got != want+"\n" {
		c.t.Fatalf("%q: %q, %v, want %q", line, got, err, want)
	}
}

// freePort returns a port that nobody listens on now, and a listener that takes it.
func freePort(t *testing.T) (int, net.Listener) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().(*net.TCPAddr).Port, listener
}

// A client finishes its transaction in time, a slower one gets the message at the deadline. The first one is not
// disturbed by kill -9 of the controller.
func TestDatabaseDrainsUntilDeadline(t *testing.T) {
	inWorlds(t, 2, "database", func(e *example) {
		port, taken := freePort(e.t)
		_ = taken.Close()
		e.create("a", map[string]any{"port": port, "terminationGracePeriodSeconds": 600})
		fast, slow := dial(e.t, port), dial(e.t, port)
		fast.says("BEGIN", "OK")
		slow.says("BEGIN", "OK")
		end := e.delete("a", "--grace-period=6")
		e.awaitEvent("a", "ShutdownRequested: ")
		e.kill()
		fast.says("SET key value", "OK")
		fast.says("COMMIT", "OK")
		e.start()
		if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = conn.Close()
			e.t.Error("a database that is being deleted accepts a connection")
		}
		_ = fast.conn.Close()
		slow.says("", "FATAL: terminating connection: the database is being deleted")
		e.t.Logf("the slow client got the message %v after the deadline", time.Since(end).Round(time.Millisecond))
		e.offInTime("a", end)

		e.create("b", map[string]any{"port": port, "terminationGracePeriodSeconds": 600})
		only := dial(e.t, port)
		only.says("BEGIN", "OK")
		e.delete("b", "--grace-period=300")
		e.awaitEvent("b", "ShutdownRequested: ")
		only.says("COMMIT", "OK")
		_ = only.conn.Close()
		e.awaitGone("b")
		e.awaitEvent("b", "PoweredOff: clean")
	})
}

func TestDatabaseWaitsForTakenPort(t *testing.T) {
	inWorlds(t, 1, "database", func(e *example) {
		port, taken := freePort(e.t)
		e.post("a", map[string]any{"port": port})
		e.awaitEvent("a", fmt.Sprintf("StartFailed: listen tcp 127.0.0.1:%d: bind: address already in use", port))
		_ = taken.Close()
		e.awaitRunning("a")
		dial(e.t, port).says("BEGIN", "OK")
		e.delete("a", "--force")
		e.awaitGone("a")
	})
}
