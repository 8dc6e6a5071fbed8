package coordinator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/archive"
	"github.com/coppice-ldl/coppice/protocol"
)

// join starts a coordinator that waits to be added, and returns its address and
// its end.
func (c *cluster) join(id string, port int) (address string, end <-chan error) {
	address = fmt.Sprintf("127.0.0.1:%d", port)
	cfg := coordinator.Config{
		ID: id, Dir: filepath.Join(c.dir, id), Peers: []coordinator.Peer{{ID: id, Host: "127.0.0.1", Port: port}},
		Heartbeat: 200 * time.Millisecond, Log: c.log.With("node", id),
	}
	for _, s := range c.client.Servers() {
		cfg.Join = append(cfg.Join, strings.TrimPrefix(s, "http://"))
	}
	done := make(chan error, 1)
	c.run(id, func(ctx context.Context) error {
		err := coordinator.Run(ctx, cfg)
		done <- err
		return err
	})
	return address, done
}

// add adds a coordinator and waits until it votes.
func (c *cluster) add(ctx context.Context, id, address string) {
	c.t.Helper()
	testkit.Until(c.t, id+" to be added", func() bool {
		_, err := c.client.Members().Add(ctx, protocol.AddRequest{ID: id, HTTP: address})
		if err != nil && !strings.Contains(err.Error(), "no coordinator answers the leader at") {
			c.t.Fatal(err)
		}
		return err == nil
	})
	testkit.Until(c.t, id+" to vote", func() bool {
		return c.role(ctx, id) == protocol.RoleVoter || c.role(ctx, id) == protocol.RoleLeader
	})
}

func (c *cluster) role(ctx context.Context, id string) string {
	m, err := c.client.Members().List(ctx)
	if err != nil {
		return err.Error()
	}
	for _, one := range m.Members {
		if one.ID == id {
			return one.Role
		}
	}
	return "none"
}

// refused checks that a change is refused and says why.
func refused(t *testing.T, err error, why string) {
	t.Helper()
	var e *client.Error
	if !errors.As(err, &e) || e.Status != 409 || !strings.Contains(e.Message, why) {
		t.Errorf("%v; want a refusal with %q", err, why)
	}
}

// Every coordinator of a cluster is replaced, one after the other, while a job
// runs; the job ends with the digest that it would have had.
func TestReplaceEveryCoordinator(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	s := eventful()
	s.Set["steps"] = "400"
	want := localDigest(t, s)
	c := start(t, 3, 2)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	ports := []int{freeBlock(t), freeBlock(t), freeBlock(t)}
	servers := c.client.Servers()
	for _, port := range ports {
		servers = append(servers, fmt.Sprintf("127.0.0.1:%d", port))
	}
	var err error
	if c.client, err = client.New(strings.Join(servers, ",")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.client.Close)
	c.client.Patience = patience
	end := c.train(ctx, s, func() {
		for i, old := range []string{"a", "b", "c"} {
			id := string(rune('d' + i))
			address, _ := c.join(id, ports[i])
			c.add(ctx, id, address)
			switch i {
			case 0: // dead before it is removed
				c.stop(old)
			case 1: // it leads
				testkit.Until(t, "the office for "+old, func() bool {
					return c.client.Members().Transfer(ctx, old) == nil && c.leader(ctx) == old
				})
			}
			testkit.Until(t, old+" to be removed", func() bool {
				_, err := c.client.Members().Remove(ctx, old)
				return err == nil || client.IsNotFound(err)
			})
		}
	})
	if got := end.Models[0].Digest; got != want {
		t.Errorf("digest %s, --local has %s", got, want)
	}
	m, err := c.client.Members().List(ctx)
	if err != nil || len(m.Members) != 3 {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, one := range m.Members {
		if !one.Alive || strings.Contains("abc", one.ID) || one.Missing > 0 {
			t.Errorf("%+v", one)
		}
	}
	cluster, err := c.client.Cluster(ctx)
	if err != nil || len(cluster.Coordinators) != 3 || len(cluster.NATS) != 3 {
		t.Errorf("%+v, %v", cluster, err)
	}
}

// What would cost the majority, or makes no sense, is refused and says why.
func TestMembersRefuse(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 3, 0)
	c.leader(ctx)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", c.peers[i].Port) }
	add := func(id, http string) error {
		_, err := c.client.Members().Add(ctx, protocol.AddRequest{ID: id, HTTP: http})
		return err
	}
	refused(t, add("a", at(1)), "a is already a member")
	refused(t, add("d", at(1)), "is taken by coordinator b")
	refused(t, add("d", "127.0.0.1:1"), "no coordinator answers the leader")
	port := freeBlock(t)
	address, ended := c.join("d", port)
	testkit.Until(t, "d to answer", func() bool {
		return !strings.Contains(add("x", address).Error(), "no coordinator answers")
	})
	refused(t, add("x", address), "has the ID d, not x")
	if _, err := c.client.Members().Remove(ctx, "z"); !client.IsNotFound(err) {
		t.Errorf("removing what is not there: %v", err)
	}
	refusedTransfer := c.client.Members().Transfer(ctx, "z")
	if !client.IsNotFound(refusedTransfer) {
		t.Errorf("handing over to nobody: %v", refusedTransfer)
	}
	leader := c.leader(ctx)
	var others []string
	for _, p := range c.peers {
		if p.ID != leader {
			others = append(others, p.ID)
		}
	}
	c.stop(others[0])
	_, err := c.client.Members().Remove(ctx, others[1])
	refused(t, err, others[0]+" does not answer")
	refused(t, c.client.Members().Transfer(ctx, others[0]), "does not answer")
	c.add(ctx, "d", address)
	if _, err := c.client.Members().Remove(ctx, others[0]); err != nil {
		t.Errorf("removing the dead one: %v", err)
	}
	// The leader is removed: it hands over, and then ends by itself; so does d.
	if _, err := c.client.Members().Remove(ctx, "d"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, coordinator.ErrRemoved) {
		t.Errorf("the removed coordinator ended with %v", err)
	}
	c.stop("d")
	// With its old folder it ends again; it must not be added as it is.
	_, ended = c.join("d", port)
	if err := <-ended; !errors.Is(err, coordinator.ErrRemoved) {
		t.Errorf("started again it ended with %v", err)
	}
}

// A backup that is taken while a job runs makes a cluster of one, and one of three,
// in which the job goes on to the same digest.
func TestRestore(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := eventful()
	want := localDigest(t, s)
	c := start(t, 3, 1)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	var backup bytes.Buffer
	end := c.train(ctx, s, func() {
		if _, err := c.client.Backup(ctx, &backup, nil); err != nil {
			t.Fatal(err)
		}
	})
	before, err := c.client.Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if end.Models[0].Digest != want {
		t.Fatalf("digest %s before the restore, --local has %s", end.Models[0].Digest, want)
	}
	if j := stateIn(t, backup.Bytes()).JobByName(end.Name); j == nil || j.State != protocol.Running || j.Round == 0 {
		t.Fatalf("the backup has the job as %+v: it shows nothing", j)
	}
	for _, size := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d coordinators", size), func(t *testing.T) {
			again := prepare(t, size)
			for _, p := range again.peers {
				r, err := coordinator.Restore(ctx, bytes.NewReader(backup.Bytes()),
					coordinator.RestoreConfig{Dir: filepath.Join(again.dir, p.ID), ID: p.ID, Peers: again.peers})
				if err != nil {
					t.Fatal(err)
				}
				if r.Cluster == before.ID || r.Index <= before.Epoch || r.Jobs != 1 || r.Datasets != 1 {
					t.Errorf("%+v", r)
				}
			}
			again.startAll(1)
			got, err := again.client.Jobs().Watch(ctx, end.Name, func(*protocol.JobInfo) {})
			if err != nil {
				t.Fatal(err)
			}
			if got.State != protocol.Done || got.Models[0].Digest != want {
				t.Errorf("%s with %+v, --local has %s", got.State, got.Models, want)
			}
			after, err := again.client.Cluster(ctx)
			if err != nil || after.Epoch <= before.Epoch || len(after.Coordinators) != size {
				t.Errorf("%+v, %v", after, err)
			}
		})
	}
}

// stateIn returns the state that a backup has.
func stateIn(t *testing.T, backup []byte) *state.State {
	t.Helper()
	a, err := archive.NewReader(bytes.NewReader(backup))
	if err != nil {
		t.Fatal(err)
	}
	record, err := a.Next()
	if err != nil {
		t.Fatal(err)
	}
	s, err := state.Decode(record)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What is no whole backup, and a folder that is not empty, is refused, and the
// folder stays as it was.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 1, 0)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	var backup bytes.Buffer
	h, err := c.client.Backup(ctx, &backup, nil)
	if err != nil || h.Blobs == 0 {
		t.Fatalf("%+v, %v", h, err)
	}
	d, err := c.client.Datasets().Get(ctx, "art")
	if err != nil {
		t.Fatal(err)
	}
	shard, err := c.client.Blobs().Get(ctx, d.Manifest.Shards[3].Digest)
	if err != nil {
		t.Fatal(err)
	}
	worse := bytes.Clone(shard)
	worse[len(worse)/2] ^= 1
	full, marked := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(full, "thesis.tex"), filepath.Join(marked, "RESTORING")} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	whole := backup.Bytes()
	for name, test := range map[string]struct {
		dir   string
		bytes []byte
		want  error
		names string
	}{
		"damaged shard": {t.TempDir(), bytes.Replace(whole, shard, worse, 1), archive.ErrCorrupt,
			d.Manifest.Shards[3].Digest},
		"cut short": {t.TempDir(), whole[:len(whole)-10], archive.ErrCorrupt, "ends too early"},
		"lacks a blob": {t.TempDir(), without(t, whole, d.Manifest.Shards[3].Digest), archive.ErrCorrupt,
			d.Manifest.Shards[3].Digest},
		"no backup":   {t.TempDir(), []byte("hello, here is no backup"), archive.ErrCorrupt, "does not begin"},
		"full folder": {full, whole, coordinator.ErrNotEmpty, "thesis.tex"},
		"left over":   {marked, whole, nil, "interrupted restore"},
	} {
		before, err := os.ReadDir(test.dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = coordinator.Restore(ctx, bytes.NewReader(test.bytes), coordinator.RestoreConfig{Dir: test.dir, ID: "a"})
		if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.names) {
			t.Errorf("%s: %v", name, err)
		}
		after, err := os.ReadDir(test.dir)
		if err != nil || len(after) != len(before) {
			t.Errorf("%s: the folder has %v: %v", name, after, err)
		}
	}
	above := t.TempDir()
	missing := coordinator.RestoreConfig{Dir: filepath.Join(above, "new", "a"), ID: "a"}
	if _, err := coordinator.Restore(ctx, bytes.NewReader(whole[:len(whole)-10]), missing); err == nil {
		t.Error("half a backup was restored")
	}
	if left, err := os.ReadDir(above); err != nil || len(left) > 0 {
		t.Errorf("a restore that failed leaves the folder %v: %v", left, err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	dir := t.TempDir()
	if _, err := coordinator.Restore(cancelled, bytes.NewReader(whole),
		coordinator.RestoreConfig{Dir: dir, ID: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("an interrupted restore leaves %v: %v", left, err)
	}
}

// without returns a backup that lacks a blob and is otherwise whole.
func without(t *testing.T, backup []byte, digest string) []byte {
	t.Helper()
	a, err := archive.NewReader(bytes.NewReader(backup))
	if err != nil {
		t.Fatal(err)
	}
	type record struct {
		*archive.Record
		data []byte
	}
	var records []record
	h := a.Header
	for {
		r, err := a.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if r.Digest == digest {
			h.Blobs, h.Bytes = h.Blobs-1, h.Bytes-r.Size
			continue
		}
		records = append(records, record{Record: r, data: data})
	}
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, h)
	for _, r := range records {
		if err == nil {
			err = w.Record(r.Kind, r.Digest, r.Size, bytes.NewReader(r.data))
		}
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
