package worker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/protocol"
)

// oneCoordinator answers as the only coordinator of a cluster.
func oneCoordinator(t *testing.T, cluster string) (address string) {
	t.Helper()
	return coordinatorThatKnows(t, cluster, "").Listener.Addr().String()
}

// coordinatorThatKnows answers for a cluster, and names another coordinator; empty:
// itself.
func coordinatorThatKnows(t *testing.T, cluster, other string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"id":%q,"protocol":%d,"numerics":%d,"heartbeat_ms":100,"nats":["nats://x:1"],"coordinators":[{"id":"a","http":%q}]}`,
			cluster, protocol.Version, round.Numerics, cmp.Or(other, r.Host))
	}))
	t.Cleanup(s.Close)
	return s
}

// gone is an address at which nobody is.
func gone(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(nil)
	defer s.Close()
	return s.Listener.Addr().String()
}

func openJoiner(t *testing.T, dir string, log *slog.Logger, join ...string) *coordinators {
	t.Helper()
	f, err := openFolder(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	j := newCoordinators(&Config{Join: join, Log: log})
	t.Cleanup(j.close)
	j.use(f)
	return j
}

// A worker that starts again after all coordinators of its --join were replaced
// finds those that it knew before; another cluster at such an address is none of its.
func TestKnownCoordinatorsAreKept(t *testing.T) {
	quiet, dir := slog.New(slog.DiscardHandler), t.TempDir()
	now := oneCoordinator(t, "c1")
	replaced := coordinatorThatKnows(t, "c1", now)
	old := replaced.Listener.Addr().String()
	j := openJoiner(t, dir, quiet, old)
	if _, err := ask(t, j); err != nil {
		t.Fatal(err)
	}
	j.folder.close()
	replaced.Close()
	j = openJoiner(t, dir, quiet, old)
	if c, err := ask(t, j); err != nil || c.ID != "c1" {
		t.Fatalf("%+v, %v", c, err)
	}
	if got := strings.Join(j.addresses, " "); got != old+" "+now {
		t.Errorf("it asks %s", got)
	}
	j.folder.close()
	file := filepath.Join(dir, knownName)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(b, []byte("cluster c1"), []byte("cluster c2"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	j = openJoiner(t, dir, quiet, old)
	if c, err := ask(t, j); err == nil || !strings.Contains(err.Error(), "the coordinator there is now in cluster c1") {
		t.Errorf("%+v, %v", c, err)
	}
}

// A worker that is given another --join waits for those, though it knows others.
func TestKnownCoordinatorsOfAnotherJoin(t *testing.T) {
	quiet, dir := slog.New(slog.DiscardHandler), t.TempDir()
	j := openJoiner(t, dir, quiet, oneCoordinator(t, "c1"))
	if _, err := ask(t, j); err != nil {
		t.Fatal(err)
	}
	j.folder.close()
	j = openJoiner(t, dir, quiet, gone(t))
	if c, err := ask(t, j); err == nil {
		t.Errorf("it joined %+v", c)
	}
}

// A file that is damaged is a warning that names it, and no more.
func TestKnownCoordinatorsDamaged(t *testing.T) {
	for _, text := range []string{
		"", "nonsense\n", knownHead + "\ncluster c1\njoin a:1", knownHead + "\ncluster \njoin a:1\na:1\n", knownHead + "\ncluster c1\njoin a:1\nno address\n", knownHead + "\ncluster c1\na:1\nb:1\n",
		knownHead + "\ncluster c1\njoin a:1\n" + strings.Repeat("a:1\n", maxKnown+1), strings.Repeat("x", maxKnownFile+1),
	} {
		dir := t.TempDir()
		f, err := openFolder(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		f.close()
		if err := os.WriteFile(filepath.Join(dir, knownName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		now := oneCoordinator(t, "c1")
		j := openJoiner(t, dir, slog.New(slog.NewTextHandler(&log, nil)), now)
		if len(j.addresses) != 1 || !strings.Contains(log.String(), knownName) {
			t.Errorf("%.40q: it asks %v and says %s", text, j.addresses, log.String())
		}
		if _, err := ask(t, j); err != nil {
			t.Error(err)
		}
		if k, err := readKnown(j.folder); err != nil || len(k.addresses) != 1 {
			t.Errorf("%.40q: it is not written anew: %+v, %v", text, k, err)
		}
	}
}

// FuzzKnown: what is read is written and read as the same, and bounded.
func FuzzKnown(f *testing.F) {
	f.Add(knownHead + "\ncluster c1\njoin h:1\n127.0.0.1:1\nhost:7100\n")
	f.Add(knownHead + "\ncluster c1\njoin h:1 i:2\n[::1]:7100\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		var k known
		var err error
		allocs.AtMost(t, 32*len(text)+4<<10, "the coordinators", func() { k, err = parseKnown(text) })
		if err != nil {
			return
		}
		if len(k.addresses) > maxKnown || k.encode() != text {
			t.Fatalf("%q is read as %+v", text, k)
		}
	})
}

// A worker asks, and keeps, the coordinators that there are: those of its --join, and those
// that one names that hears a leader.
func TestCoordinatorsAreForgotten(t *testing.T) {
	dir := t.TempDir()
	var told atomic.Pointer[protocol.Cluster]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(told.Load())
	}))
	t.Cleanup(s.Close)
	join := s.Listener.Addr().String()
	j := openJoiner(t, dir, slog.New(slog.DiscardHandler), join)
	tell := func(leader string, others ...string) {
		t.Helper()
		c := &protocol.Cluster{ID: "c1", Leader: leader, Protocol: protocol.Version, Numerics: round.Numerics, Heartbeat: 100, NATS: []string{"nats://x:1"}}
		for i, a := range others {
			c.Coordinators = append(c.Coordinators, protocol.MemberEntry{ID: fmt.Sprint(i), HTTP: a})
		}
		told.Store(c)
		if _, err := ask(t, j); err != nil {
			t.Fatal(err)
		}
	}
	const many = 20
	for range many {
		tell("0", gone(t), gone(t))
	}
	last := []string{gone(t), gone(t)}
	tell("0", last...)
	tell("", gone(t)) // cut off from the others, it may be late
	tell("")
	if len(j.addresses) != 4 || j.addresses[0] != join {
		t.Errorf("after %d replacements it asks %v", many, j.addresses)
	}
	if k, err := readKnown(j.folder); err != nil || !slices.Equal(k.addresses, last) {
		t.Errorf("it keeps %v, %v", k.addresses, err)
	}
}

// TestRefusedWorker: the log says once why coordinators refuse a worker. The worker then asks less and
// less often, until it is accepted.
func TestRefusedWorker(t *testing.T) {
	var reason atomic.Pointer[string]
	accepts := coordinatorThatKnows(t, "c1", "").Config.Handler
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why := reason.Load()
		if why == nil {
			accepts.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		json.NewEncoder(w).Encode(protocol.Problem{Error: *why})
	}))
	t.Cleanup(s.Close)
	var log bytes.Buffer
	address := s.Listener.Addr().String()
	c := newCoordinators(&Config{Join: []string{address}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	t.Cleanup(c.close)
	refuse := func(why string, rounds int) {
		t.Helper()
		log.Reset()
		reason.Store(&why)
		for range rounds {
			if _, err := ask(t, c); err == nil || !c.warnRefused() {
				t.Fatalf("the worker is accepted: %v", err)
			}
		}
		line := log.String()
		if n := strings.Count(line, "no coordinator accepts this worker"); n != 1 || !strings.Contains(line, address+": the coordinator refuses this worker: 403 Forbidden: "+why[:7]) || len(line) > 2*refusedText {
			t.Errorf("logged %d times in %d bytes: %s", n, len(line), line)
		}
	}
	refuse("revoked", 3)
	if got := c.pause(joinPause); got != 3*time.Second {
		t.Errorf("after 3 refusals it waits for %v", got)
	}
	refuse(strings.Repeat("expired", 10000), 20)
	if got := c.pause(joinPause); got != refusedMost {
		t.Errorf("after 23 refusals it waits for %v", got)
	}
	reason.Store(nil)
	if _, err := ask(t, c); err != nil || c.warnRefused() || c.pause(joinPause) != joinPause {
		t.Errorf("accepted: error %v, pause %v", err, c.pause(joinPause))
	}
	refuse("revoked", 1)
	s.Close()
	if _, err := ask(t, c); err == nil || c.warnRefused() || c.pause(joinPause) != joinPause {
		t.Errorf("nobody answers: error %v, pause %v", err, c.pause(joinPause))
	}
}

// ask asks once and returns the newest answer.
func ask(t *testing.T, c *coordinators) (*protocol.Cluster, error) {
	list, err := c.ask(t.Context(), joinTimeout, func(a *protocol.Cluster) bool { return a.Leader != "" })
	return newest(list), err
}
