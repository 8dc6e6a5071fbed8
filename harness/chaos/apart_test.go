package chaos

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/protocol"
)

// aSeparate is a separate cluster of which nothing runs.
func aSeparate(t *testing.T) *separate {
	t.Helper()
	s := aStrike(1)
	s.rig = &rig{dir: t.TempDir()}
	d, err := s.separate("fault")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The list of peers follows the ports, and the folder stays where something was found.
func TestSeparate(t *testing.T) {
	d := aSeparate(t)
	d.ports["a"], d.ports["b"], d.ports["c"] = 1, 2, 3
	if got := d.peers(); got != "a=127.0.0.1:1,b=127.0.0.1:2,c=127.0.0.1:3" {
		t.Error(got)
	}
	d.ports["a"] = 9
	if got := d.servers("c", "a"); !slices.Equal(got, []string{"127.0.0.1:3", "127.0.0.1:9"}) {
		t.Error(got)
	}
	failed := errors.New("failed")
	if err := d.end(failed); !errors.Is(err, failed) {
		t.Error(err)
	}
	if _, err := os.Stat(d.dir); err != nil {
		t.Error("the folder of a failure is removed")
	}
	if err := d.end(nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(d.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder stays: %v", err)
	}
	if noneApart(&Config{}) != "" || noneApart(&Config{Network: new(netlab.Settings)}) == "" {
		t.Error("a second cluster is on loopback alone")
	}
}

func TestOneCluster(t *testing.T) {
	self := func(clusters ...string) (list []protocol.Self) {
		for _, c := range clusters {
			list = append(list, protocol.Self{Cluster: c})
		}
		return list
	}
	if err := oneCluster(self("x", "x", "x")); err != nil {
		t.Error(err)
	}
	for _, wrong := range [][]string{{"x", "x", "y"}, {"y", "x", "x"}, {"", "", ""}} {
		if err := oneCluster(self(wrong...)); !errors.Is(err, ErrFailed) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

// What happens at a first start follows from the seed, and hits two coordinators.
func TestNewFirstStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		f, again := newFirstStart(rand.New(rand.NewPCG(seed, 0))), newFirstStart(rand.New(rand.NewPCG(seed, 0)))
		if !reflect.DeepEqual(f, again) {
			t.Fatalf("one seed gave %+v and %+v", f, again)
		}
		if sorted := slices.Sorted(slices.Values(f.order)); !slices.Equal(sorted, separateIDs) || len(f.gaps) != len(f.order) {
			t.Fatalf("%+v", f)
		}
		if f.killed == f.wiped || !slices.Contains(f.order, f.killed) || !slices.Contains(f.order, f.wiped) {
			t.Fatalf("%s is killed, %s wiped", f.killed, f.wiped)
		}
		if f.kill >= 2*mostEarly || f.wipe >= mostEarly || f.again >= mostGap || slices.Max(f.gaps) >= mostGap {
			t.Fatalf("%+v", f)
		}
	})
}

func TestClusterOf(t *testing.T) {
	dir := t.TempDir()
	if _, err := clusterOf(dir); err == nil {
		t.Error("a folder without CLUSTER passed")
	}
	write(t, filepath.Join(dir, "CLUSTER"), " \n")
	if _, err := clusterOf(dir); err == nil {
		t.Error("an empty CLUSTER passed")
	}
	write(t, filepath.Join(dir, "CLUSTER"), "39b7ffc7b0af\na\n")
	if got, err := clusterOf(dir); err != nil || got != "39b7ffc7b0af" {
		t.Errorf("%q, %v", got, err)
	}
}

// The folder of another backup is of another cluster, and those of one backup are of one.
func TestDiffers(t *testing.T) {
	for _, x := range []struct{ a, b, c, odd, says string }{
		{"x", "x", "y", "c", ""},
		{"y", "x", "x", "a", ""},
		{"x", "x", "x", "c", "c was restored from another backup"},
		{"x", "z", "y", "c", "clusters"},
		{"x", "x", "y", "a", "clusters"},
	} {
		err := differs(map[string]string{"a": x.a, "b": x.b, "c": x.c}, x.odd)
		if (x.says == "") != (err == nil) || err != nil && (!errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// A coordinator that is ready or knows a leader serves, and one that does not has to name
// the cluster that is not its own.
func TestView(t *testing.T) {
	clusters := map[string]string{"a": "x1", "b": "x1", "c": "y2"}
	for _, x := range []struct {
		view          view
		serves, tells bool
	}{
		{view{id: "a", status: 503, text: "c is of cluster y2, this is x1"}, false, true},
		{view{id: "a", status: 503, text: "this is of cluster x1"}, false, false},
		{view{id: "c", status: 503, text: "a and b are of cluster x1"}, false, true},
		{view{id: "c", status: 503, text: "an election is in progress"}, false, false},
		{view{id: "a", text: "connection refused"}, false, false},
		{view{id: "b", status: 200, text: "ready"}, true, false},
		{view{id: "b", status: 503, leader: "c"}, true, false},
	} {
		if err := x.view.serves(); (err != nil) != x.serves || err != nil && !errors.Is(err, ErrFailed) {
			t.Errorf("%+v: %v", x.view, err)
		}
		if got := x.view.tells(clusters, "c"); got != x.tells {
			t.Errorf("%+v: %v", x.view, got)
		}
	}
}
