package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/freeport"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// separate is a cluster of three coordinators on loopback that one fault starts and ends,
// while the cluster of the leg goes on. Nobody waits for it: the fault starts and ends its
// processes one by one.
type separate struct {
	*rig
	name  string         // of its folder and its logs
	dir   string         // has the folders of the coordinators
	ports map[string]int // first ports of the coordinators, by id
	nodes map[string]*proc.Node
}

// separateIDs are its coordinators.
var separateIDs = names(0)

// noneApart says why there can be no separate cluster.
func noneApart(c *Config) string {
	if c.Network != nil {
		return "the fault needs a second cluster, which runs only on loopback"
	}
	return ""
}

// separate makes the cluster of a fault; nothing runs yet.
func (s *strike) separate(fault string) (*separate, error) {
	bases, err := freeport.Blocks(len(separateIDs))
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%08x", fault, s.rng.Uint32())
	d := &separate{rig: s.rig, name: name, dir: filepath.Join(s.dir, name), ports: make(map[string]int), nodes: make(map[string]*proc.Node)}
	for i, id := range separateIDs {
		d.ports[id] = bases[i]
	}
	return d, os.MkdirAll(d.dir, 0o755)
}

// end ends its processes, and removes its folders if all went well.
func (d *separate) end(err error) error {
	var errs []error
	for _, n := range d.nodes {
		errs = append(errs, n.Kill())
	}
	if err == nil {
		errs = append(errs, os.RemoveAll(d.dir))
	}
	return errors.Join(err, errors.Join(errs...))
}

// folder returns the folder of a coordinator.
func (d *separate) folder(id string) string { return filepath.Join(d.dir, id) }

// server returns the HTTP address of a coordinator.
func (d *separate) server(id string) string {
	return net.JoinHostPort(freeport.Host, strconv.Itoa(d.ports[id]))
}

// servers lists the HTTP addresses of these coordinators.
func (d *separate) servers(ids ...string) (list []string) {
	for _, id := range ids {
		list = append(list, d.server(id))
	}
	return list
}

// peers is the list of the coordinators as --peers takes it.
func (d *separate) peers() string {
	var list []string
	for _, id := range separateIDs {
		list = append(list, id+"="+d.server(id))
	}
	return strings.Join(list, ",")
}

// start starts coordinators with the list of peers as it is now.
func (d *separate) start(ids ...string) error {
	for _, id := range ids {
		flags, err := d.certs.Flags(certs.Coordinator, id)
		if err != nil {
			return err
		}
		args := append([]string{"coordinator", "--id", id, "--dir", d.folder(id), "--peers", d.peers(), "--die-with-stdin"}, append(flags, d.flags...)...)
		n, err := proc.Launch(d.exe, d.env, id, filepath.Join(d.rig.dir, "logs", d.name+"-"+id+".log"), args...)
		if err != nil {
			return err
		}
		d.nodes[id] = n
	}
	return nil
}

// wipe kills a coordinator, deletes its folder and starts it again.
func (d *separate) wipe(id string) error {
	return errors.Join(d.nodes[id].Kill(), os.RemoveAll(d.folder(id)), d.start(id))
}

// run runs a command of the executable to its end.
func (d *separate) run(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, d.exe, args...)
	c.Env = append(os.Environ(), d.env...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("coppice %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// client returns a client of these coordinators, which tries once if patience is 0.
func (d *separate) client(patience time.Duration, ids ...string) (*client.Client, error) {
	c, err := client.NewWith(strings.Join(d.servers(ids...), ","), d.certs.Source())
	if err == nil {
		c.Patience = patience
	}
	return c, err
}

// formed waits until all coordinators are ready and checks that they are one cluster, which
// acknowledges an import.
func (d *separate) formed(ctx context.Context) error {
	if err := d.allReady(ctx, d.servers(separateIDs...)); err != nil {
		return err
	}
	var all []protocol.Self
	for _, id := range separateIDs {
		s, err := d.self(ctx, d.server(id))
		if err != nil {
			return err
		}
		all = append(all, *s)
	}
	if err := oneCluster(all); err != nil {
		return err
	}
	return d.acknowledges(ctx, "formed", separateIDs...)
}

// acknowledges imports a dataset by these coordinators and reads it again.
func (d *separate) acknowledges(ctx context.Context, name string, ids ...string) error {
	c, err := d.client(client.DefaultPatience, ids...)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Datasets().Import(ctx, protocol.DatasetPut{Name: name}, generate.Artificial(64, 1), importer.Options{}); err != nil {
		return fmt.Errorf("importing dataset %s through coordinator %s: %w", name, strings.Join(ids, ", "), err)
	}
	if _, err := c.Datasets().Get(ctx, name); err != nil {
		return fmt.Errorf("%w: dataset %s was acknowledged, but cannot be read: %w", ErrFailed, name, err)
	}
	return nil
}

// oneCluster checks that coordinators say the same of their cluster.
func oneCluster(all []protocol.Self) error {
	for _, s := range all {
		if s.Cluster != all[0].Cluster || s.Cluster == "" {
			return fmt.Errorf("%w: coordinator %s is a member of cluster %q, but %s is a member of %q", ErrFailed, all[0].ID, all[0].Cluster, s.ID, s.Cluster)
		}
	}
	return nil
}

// portInUse starts three coordinators for the first time while a port of a is in use, and
// then all of them with another address of a.
func portInUse(ctx context.Context, s *strike) (ready time.Duration, err error) {
	d, err := s.separate("port-in-use")
	if err != nil {
		return 0, err
	}
	defer func() { err = d.end(err) }()
	spare, err := freeport.Block()
	if err != nil {
		return 0, err
	}
	taken := s.rng.IntN(freeport.BlockPorts)
	pause := s.between(leastAlone, 2*mostAlone)
	s.target = [...]string{"HTTP", "Raft", "NATS", "routes"}[taken]
	l, err := net.Listen("tcp", net.JoinHostPort(freeport.Host, strconv.Itoa(d.ports["a"]+taken)))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	if err := d.start(separateIDs...); err != nil {
		return 0, err
	}
	if err := d.nodes["a"].Wait(ctx); err != nil {
		return 0, fmt.Errorf("coordinator a runs although its port is in use (%v): %w", l.Addr(), err)
	}
	if err := wait.For(ctx, pause); err != nil {
		return 0, err
	}
	if err := errors.Join(d.nodes["b"].Quit(ctx), d.nodes["c"].Quit(ctx)); err != nil {
		return 0, err
	}
	d.ports["a"] = spare
	began := time.Now()
	if err := d.start(separateIDs...); err != nil {
		return 0, err
	}
	if err := d.formed(ctx); err != nil {
		return 0, fmt.Errorf("after a start with another address for coordinator a: %w", err)
	}
	ready = time.Since(began)
	if err := d.nodes["b"].Kill(); err != nil {
		return 0, err
	}
	if err := d.acknowledges(ctx, "without-b", "a", "c"); err != nil {
		return 0, fmt.Errorf("while coordinator b is killed: %w", err)
	}
	return ready, d.allReady(ctx, d.servers("a", "c"))
}

// firstStart is when what happens at the first start of a cluster; times are pauses before.
type firstStart struct {
	order  []string // of the starts
	gaps   []time.Duration
	killed string
	kill   time.Duration
	again  time.Duration // it is started again
	wiped  string
	wipe   time.Duration
}

// The bounds of the pauses of a firstStart.
const (
	mostGap   = 300 * time.Millisecond // between starts
	mostEarly = time.Second            // from a start to a kill or a wipe
)

// newFirstStart draws one.
func newFirstStart(rng *rand.Rand) *firstStart {
	f := &firstStart{order: slices.Clone(separateIDs)}
	rng.Shuffle(len(f.order), func(i, j int) { f.order[i], f.order[j] = f.order[j], f.order[i] })
	below := func(most time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(most))) }
	for range f.order {
		f.gaps = append(f.gaps, below(mostGap))
	}
	hit := rng.Perm(len(f.order))
	f.killed, f.wiped = f.order[hit[0]], f.order[hit[1]]
	f.kill, f.again, f.wipe = below(2*mostEarly), below(mostGap), below(mostEarly)
	return f
}

// wipeAtFirstStart kills a coordinator soon after the first start of a cluster, starts it
// again, and deletes the folder of another: a majority of the folders is whole.
func wipeAtFirstStart(ctx context.Context, s *strike) (ready time.Duration, err error) {
	d, err := s.separate("first-start-wipe")
	if err != nil {
		return 0, err
	}
	defer func() { err = d.end(err) }()
	f := newFirstStart(s.rng)
	s.target = f.killed + "+" + f.wiped
	for i, id := range f.order {
		if err := errors.Join(wait.For(ctx, f.gaps[i]), d.start(id)); err != nil {
			return 0, err
		}
	}
	err = errors.Join(wait.For(ctx, f.kill), d.nodes[f.killed].Kill(), wait.For(ctx, f.again), d.start(f.killed))
	if err = errors.Join(err, wait.For(ctx, f.wipe), d.wipe(f.wiped)); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := d.formed(ctx); err != nil {
		return 0, fmt.Errorf("after %s was killed and the folder of %s was emptied: %w", f.killed, f.wiped, err)
	}
	return time.Since(began), nil
}
