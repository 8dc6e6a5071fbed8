package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/harness/freeport"
	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// leg is one of the clusters that the suite runs.
type leg int

// The legs, in the order in which they run.
const (
	embedded leg = iota // NATS in the coordinators
	external            // NATS as a process of its own, on a network that can be cut if there is one
	disks               // each process on a disk of its own
	linked              // on a network that can be cut
	legs
)

func (l leg) String() string {
	return [...]string{"embedded NATS", "external NATS", "disks", "partitions"}[l]
}

const coordinators = 3

// rig is the cluster of a leg.
type rig struct {
	leg     leg
	dir     string
	cluster *proc.Cluster
	client  *client.Client
	nats    *proc.Node         // of the external leg
	lab     *lab               // nil: loopback
	servers []string           // HTTP addresses of the coordinators
	looks   *proc.Observer     // past any link: it is not cut off
	certs   *proc.Certificates // nil: in the clear
	exe     string
	url     string   // of the external NATS itself
	mounted []string // folders of the small disks, in the order of mounting
}

// startWithin bounds the start of a cluster.
const startWithin = time.Minute

// newRig starts a leg's cluster.
func newRig(ctx context.Context, c *Config, l leg) (r *rig, err error) {
	r = &rig{leg: l, dir: filepath.Join(c.Dir, strings.Fields(l.String())[0]), exe: c.Exe}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	settings := c.Network
	if settings == nil && (l == external || l == linked) && netlab.Missing() == "" {
		settings = new(netlab.Settings)
	}
	if settings != nil {
		if r.lab, err = newLab(*settings, c.Seed+uint64(l)); err != nil {
			return nil, err
		}
	}
	if c.TLS {
		if r.certs, err = proc.NewCertificates(filepath.Join(r.dir, "certs")); err != nil {
			return nil, err
		}
	}
	r.looks = proc.NewObserver(r.certs.Source(), &http.Transport{MaxIdleConnsPerHost: maxPolls,
		DialContext: r.lab.observer().DialContext})
	if l == external {
		if err := r.startNATS(); err != nil {
			return nil, err
		}
	}
	if l == disks && noDisks() == "" {
		if err := r.mount(names(c.Workers)); err != nil {
			return nil, err
		}
	}
	pc := proc.Config{
		Exe: c.Exe, Dir: r.dir, Coordinators: coordinators, Workers: c.Workers, Extra: r.extra, Certificates: r.certs,
	}
	if c.Heartbeat > 0 {
		pc.Args = []string{"--heartbeat", c.Heartbeat.String()}
	}
	if r.lab != nil {
		pc.Hosts = r.lab.host
	}
	cluster, err := proc.Start(ctx, pc)
	if err != nil {
		return nil, err
	}
	r.cluster, r.servers = cluster, strings.Split(cluster.Servers(), ",")
	r.client, err = r.newClient(0)
	return r, err
}

// newClient returns a client that asks the coordinator of a place in the list first.
func (r *rig) newClient(first int) (*client.Client, error) {
	servers := slices.Concat(r.servers[first:], r.servers[:first])
	c, err := client.NewWith(strings.Join(servers, ","), r.certs.Source())
	if err != nil {
		return nil, err
	}
	c.Patience = 2 * mostRecovery
	return c, nil
}

// callers returns a client for each coordinator, which asks the coordinator first.
func (r *rig) callers() (list []*client.Client, err error) {
	for i := range r.servers {
		c, err := r.newClient(i)
		if err != nil {
			return list, err
		}
		list = append(list, c)
	}
	return list, nil
}

// startNATS starts the external NATS.
func (r *rig) startNATS() (err error) {
	var host proc.Host = proc.Loopback{}
	if r.lab != nil {
		if host, err = r.lab.host(natsHost); err != nil {
			return err
		}
	}
	port, err := freeport.Block()
	if err != nil {
		return err
	}
	address := net.JoinHostPort(host.Address(), strconv.Itoa(port))
	flags, err := r.certs.Flags(certs.Coordinator, natsHost)
	if err != nil {
		return err
	}
	args := append([]string{"nats", "--listen", address, "--die-with-stdin"}, flags...)
	r.nats, err = proc.LaunchOn(host, r.exe, nil, natsHost, filepath.Join(r.dir, "logs", "nats.log"), args...)
	r.url = "nats://" + address
	return err
}

// names lists the processes of a cluster as package proc names them.
func names(workers int) []string {
	list := []string{"a", "b", "c"}
	for i := range workers {
		list = append(list, fmt.Sprintf("w%d", i+1))
	}
	return list
}

// imagesDir is where the files of small disks are: in memory.
const imagesDir = "images"

// image returns the file that the small disk of a process is in.
func (r *rig) image(name string) string { return filepath.Join(r.dir, imagesDir, name) }

// mount gives each process a small disk.
func (r *rig) mount(names []string) error {
	images := filepath.Join(r.dir, imagesDir)
	if err := os.MkdirAll(images, 0o755); err != nil {
		return err
	}
	size := fmt.Sprintf("size=%d", (len(names)+1)*diskBytes)
	if err := mountTool("mount", "-t", "tmpfs", "-o", size, "coppice-chaos", images); err != nil {
		return err
	}
	r.mounted = append(r.mounted, images)
	for _, name := range names {
		dir := filepath.Join(r.dir, name)
		if err := newDisk(r.image(name), dir); err != nil {
			return err
		}
		r.mounted = append(r.mounted, dir)
	}
	return nil
}

// unmount removes the small disks, the last first.
func (r *rig) unmount() error {
	var errs []error
	for _, dir := range slices.Backward(r.mounted) {
		errs = append(errs, unmountDisk(dir))
	}
	return errors.Join(errs...)
}

// snapshotBytes is the log after which coordinators take a snapshot here: they
// shall do it all the time.
const snapshotBytes = 256 << 10

// extra returns arguments of a process: a worker computes one task at a time, for
// the machine is shared by all, and each process is told of an external NATS.
func (r *rig) extra(name string) (args []string) {
	if strings.HasPrefix(name, "w") {
		args = append(args, "--slots", "1")
	} else {
		args = append(args, "--snapshot-bytes", fmt.Sprint(snapshotBytes))
	}
	if r.url != "" {
		return append(args, "--nats", r.url)
	}
	return args
}

// close ends everything that the rig started.
func (r *rig) close() error {
	var errs []error
	if r.cluster != nil {
		errs = append(errs, r.cluster.Close())
	}
	if r.nats != nil {
		errs = append(errs, r.nats.Kill())
	}
	if r.lab != nil {
		errs = append(errs, r.lab.network.Close())
	}
	errs = append(errs, r.unmount())
	if r.client != nil {
		r.client.Close()
	}
	if r.looks != nil {
		r.looks.Close()
	}
	return errors.Join(errs...)
}

// leader returns the coordinator that leads, once one does.
func (r *rig) leader(ctx context.Context) (*proc.Node, error) {
	for {
		n, err := r.cluster.Leader(ctx)
		if n != nil && err == nil {
			return n, nil
		}
		if wait.For(ctx, lookPause) != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

// lookPause is the time between two looks at something that is awaited.
const lookPause = 20 * time.Millisecond

// healthy waits until every coordinator is ready, one leads, and it knows every
// worker.
func (r *rig) healthy(ctx context.Context) error {
	if err := r.cluster.Ready(ctx); err != nil {
		return err
	}
	return r.allReady(ctx, r.servers)
}

// allReady waits until /readyz of all of these coordinators is 200, in one look at them.
func (r *rig) allReady(ctx context.Context, servers []string) error {
	var last error // before ctx was done
	for {
		var errs []error
		for _, server := range servers {
			if err := r.ready(ctx, server); err != nil {
				errs = append(errs, fmt.Errorf("the coordinator at %s is not ready: %w", server, err))
			}
		}
		if len(errs) == 0 {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = errors.Join(errs...)
		}
		if wait.For(ctx, lookPause) != nil {
			return last
		}
	}
}

// ready asks a coordinator whether it is ready.
func (r *rig) ready(ctx context.Context, server string) error {
	status, text, err := r.get(ctx, server, "/readyz")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d: %s", status, bytes.TrimSpace(text))
	}
	return err
}

// maxAnswer bounds an answer that is read.
const maxAnswer = protocol.MaxJSON

// get asks a coordinator once.
func (r *rig) get(ctx context.Context, server, path string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	return r.looks.Get(ctx, server, path, maxAnswer)
}

// followers lists the coordinators but the leader, in order.
func (r *rig) followers(leader *proc.Node) []*proc.Node {
	return slices.DeleteFunc(slices.Clone(r.cluster.Coordinators), func(n *proc.Node) bool { return n == leader })
}

// blob asks one coordinator for a blob.
func (r *rig) blob(ctx context.Context, n *proc.Node, digest string) ([]byte, error) {
	status, b, err := r.looks.Get(ctx, r.cluster.HTTP(n), "/v1/blobs/"+digest, maxBlob)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the blob %s of %s: status %d", digest, n.Name, status)
	}
	return b, err
}

// maxBlob bounds a blob that is read.
const maxBlob = 256 << 20
