package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

// inPod starts a container in the mounts of this process: $POD/root is its root, which nobody can write, and the lines
// of $POD/mounts are its volumes. Its user is the user of the image, where this machine lets root become another user.
// If the test is killed, stdin closes, and the container is killed too.
const inPod = `set -e
exec 3<&0
(read -r -u 3 _ || read -r _ _ _ parent _ </proc/$BASHPID/stat; [[ $parent == $$ ]] && kill -KILL $$) >/dev/null 2>&1 &
exec 3<&-
mount --make-rprivate /
mount --bind "$POD/root" "$POD/root"
while read -r from to mode; do
	mount --bind "$from" "$POD/root$to"
	mount -o "remount,bind,$mode" "$POD/root$to"
done <"$POD/mounts"
mount -o remount,bind,ro "$POD/root"
exec env -i "${variables[@]}" "$(command -v chroot)" --userspec="$AS" --groups="${AS#*:}" "$POD/root" /coppice "$@"
`

// binaryVariable names the binary that TestPods runs.
const binaryVariable = "COPPICE_TEST_BINARY"

// known are all ports of all processes.
var known = []uint16{7100, 7101, 7102, 7103, 7500}

// place is where a pod runs.
type place struct {
	host *netlab.Host
	dir  string // has its volumes
	cmd  *exec.Cmd
	out  *bytes.Buffer
}

// cluster runs pods as processes on hosts of a network, without Kubernetes.
type cluster struct {
	t       *testing.T
	m       *manifests
	net     *netlab.Network
	root    string // folder
	secrets map[string]map[string]string
	places  map[string]*place // by the name of the pod
	roles   map[string]labels // labels of pods by host
	backup  string            // file that containers with a standard input get
	writes  int
}

func newCluster(t *testing.T) *cluster {
	n, err := netlab.New(netlab.Settings{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{t: t, m: all(t), net: n, root: t.TempDir(), places: make(map[string]*place),
		roles: make(map[string]labels)}
	c.name()
	return c
}

// name writes the names of the pods and services, in place: all pods see the same file.
func (c *cluster) name() {
	text := "127.0.0.1 localhost\n"
	coordinators := c.m.statefulSets["coppice"].Spec.Template.Metadata.Labels
	for name, p := range c.places {
		if p.host != nil && c.roles[p.host.Name].has(coordinators) {
			text += p.host.Address() + " " + name + ".coppice-peers\n" + p.host.Address() + " coppice\n"
		}
	}
	if err := os.WriteFile(filepath.Join(c.root, "hosts"), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// prepare makes the folders of a pod, and of its container.
func (c *cluster) prepare(pod string, t *template, one *container) *place {
	c.address(pod, t)
	p, spec := c.places[pod], &t.Spec
	root := filepath.Join(p.dir, "root")
	lines := fmt.Sprintf("%s /coppice ro\n%s /etc/hosts ro\n/proc /proc rw\n", os.Getenv(binaryVariable),
		filepath.Join(c.root, "hosts"))
	for _, dir := range []string{"etc", "proc"} {
		c.check(os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, file := range []string{"coppice", "etc/hosts"} {
		c.check(os.WriteFile(filepath.Join(root, file), nil, 0o755))
	}
	for _, m := range one.VolumeMounts {
		dir := filepath.Join(p.dir, "volumes", m.Name)
		_, err := os.Stat(dir)
		isNew := errors.Is(err, os.ErrNotExist)
		c.check(os.MkdirAll(dir, 0o755))
		at := slices.IndexFunc(spec.Volumes, func(v volume) bool { return v.Name == m.Name })
		switch {
		case at >= 0 && spec.Volumes[at].Secret != nil:
			c.mount(pod, &spec.Volumes[at])
		case isNew: // an emptyDir, or a claim
			c.check(errors.Join(os.Chown(dir, 0, spec.SecurityContext.FSGroup), os.Chmod(dir, 0o775|os.ModeSetgid)))
		}
		c.check(os.MkdirAll(filepath.Join(root, m.MountPath), 0o755))
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		lines += dir + " " + m.MountPath + " " + mode + "\n"
	}
	if one.Stdin {
		c.check(errors.Join(os.MkdirAll(filepath.Join(root, "dev"), 0o755),
			os.WriteFile(filepath.Join(root, "dev", "stdin"), nil, 0o755), os.Chmod(c.backup, 0o644)))
		lines += c.backup + " /dev/stdin ro\n"
	}
	c.check(os.WriteFile(filepath.Join(p.dir, "mounts"), []byte(lines), 0o644))
	return p
}

// mount writes the volume of a secret as a node does: a link changes from the old files to the new ones at once.
func (c *cluster) mount(pod string, v *volume) {
	dir := filepath.Join(c.places[pod].dir, "volumes", v.Name)
	c.writes++
	next := fmt.Sprintf("..%d", c.writes)
	mountSecret(c.t, v, c.secrets[v.Secret.SecretName], filepath.Join(dir, next))
	c.check(filepath.Walk(filepath.Join(dir, next), func(path string, info os.FileInfo, err error) error {
		if err == nil && info.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return errors.Join(err, os.Chown(path, 0, 65534))
	}))
	entries, err := os.ReadDir(filepath.Join(dir, next))
	c.check(err)
	c.check(os.Symlink(next, filepath.Join(dir, "..tmp")))
	c.check(os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	for _, e := range entries {
		if err := os.Symlink("..data/"+e.Name(), filepath.Join(dir, e.Name())); !errors.Is(err, os.ErrExist) {
			c.check(err)
		}
	}
}

func (c *cluster) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// address gives a pod an address, if it has none.
func (c *cluster) address(pod string, p *template) {
	at := c.places[pod]
	if at == nil {
		at = &place{dir: filepath.Join(c.root, pod)}
		c.places[pod] = at
	}
	if at.host != nil {
		return
	}
	c.writes++
	host, err := c.net.Host(fmt.Sprintf("%s.%d", pod, c.writes))
	c.check(err)
	at.host, c.roles[host.Name] = host, p.Metadata.Labels
	c.name()
	c.police()
}

// start starts a container of a pod, with other arguments if there are more.
func (c *cluster) start(pod string, p *template, one *container, args ...string) *place {
	c.t.Helper()
	at := c.prepare(pod, p, one)
	as := "0:0"
	if b, err := os.ReadFile("/proc/self/uid_map"); err == nil && strings.Contains(string(b), "4294967295") {
		as = fmt.Sprintf("%d:%d", p.Spec.SecurityContext.RunAsUser, p.Spec.SecurityContext.RunAsGroup)
	}
	variables := "variables=("
	for _, e := range one.Env {
		if e.ValueFrom == nil {
			variables += "'" + e.Name + "=" + e.Value + "' "
		}
	}
	if len(args) == 0 {
		args = one.expand(pod)
	}
	cmd := exec.Command("bash", append([]string{"-c", variables + ")\n" + inPod, "bash"}, args...)...)
	cmd.Env = append(os.Environ(), "POD="+at.dir, "AS="+as)
	at.cmd, at.out = cmd, new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = at.out, at.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	_, err := cmd.StdinPipe()
	c.check(errors.Join(err, at.host.Start(cmd)))
	return at
}

// run runs a container to its end, and returns what it prints.
func (c *cluster) run(pod string, p *template, one *container, args ...string) string {
	c.t.Helper()
	at := c.start(pod, p, one, args...)
	if err := at.cmd.Wait(); err != nil {
		c.t.Fatalf("%s: %v %v: %v\n%s", pod, one.Args, args, err, at.out)
	}
	return at.out.String()
}

// stop ends a pod as a node does, and returns how long it took.
func (c *cluster) stop(pod string) time.Duration {
	c.t.Helper()
	p, began := c.places[pod], time.Now()
	err := errors.Join(p.cmd.Process.Signal(syscall.SIGTERM), p.cmd.Wait())
	if err != nil {
		c.t.Errorf("%s: %v\n%s", pod, err, p.out)
	}
	return time.Since(began)
}

// police stops the packets that no network policy allows. Pods whose labels no policy selects may connect to others.
func (c *cluster) police() {
	c.net.Heal()
	for from, a := range c.roles {
		for to, b := range c.roles {
			if from == to {
				continue
			}
			passes := append(c.allows(a, b), c.allows(b, a)...) // answers have the port of the request
			var stopped []uint16
			for _, port := range known {
				if !slices.Contains(passes, port) {
					stopped = append(stopped, port)
				}
			}
			c.net.Cut(netlab.Cut{From: from, To: to, Ports: stopped})
		}
	}
}

// allows returns the ports to which pods with the labels from may connect on pods with the labels to.
func (c *cluster) allows(from, to labels) (ports []uint16) {
	in, out, bounds := []int{}, []int{}, false
	for _, p := range c.m.policies {
		if to.has(p.Spec.PodSelector.MatchLabels) {
			in = append(in, allowed(p.Spec.Ingress, from, from[nameLabel] == "prometheus")...)
		}
		if from.has(p.Spec.PodSelector.MatchLabels) && slices.Contains(p.Spec.PolicyTypes, "Egress") {
			bounds, out = true, append(out, allowed(p.Spec.Egress, to, false)...)
		}
	}
	for _, port := range in {
		if !bounds || slices.Contains(out, port) {
			ports = append(ports, uint16(port))
		}
	}
	return ports
}

// from returns connections that are made on a host.
func from(h *netlab.Host) dial {
	return func(_ context.Context, network, address string) (c net.Conn, err error) {
		err = h.Do(func() error {
			c, err = net.DialTimeout(network, address, 5*time.Second)
			return err
		})
		return c, err
	}
}

// ready waits until a pod is ready, as its node finds.
func (c *cluster) ready(pod string, one *container) {
	c.t.Helper()
	node, err := c.net.Host("node")
	c.check(err)
	address := fmt.Sprintf("%s:%d", c.places[pod].host.Address(), one.Ports[0].ContainerPort)
	defer func() {
		if c.t.Failed() {
			c.t.Logf("%s: %s", pod, c.places[pod].out)
		}
	}()
	testkit.Until(c.t, pod+" to be ready", func() bool {
		return probed(one.ReadinessProbe, address, from(node)) == http.StatusOK
	})
}

// binary builds the binary as releases have it.
func binary(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "coppice")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", file, "../../cmd/coppice")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// TestPods runs the containers of the manifests on a network of hosts with the names of their pods, without Kubernetes:
// with their arguments, volumes, users, probes and network policies. The first job makes the certificates. While a job
// of a client runs, all coordinators are restarted, one after the other. Then one gets another address, and the
// certificates are renewed. At last, a backup becomes a new cluster.
func TestPods(t *testing.T) {
	testkit.WithoutRace(t)
	for _, program := range []string{"bash", "mount", "chroot", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	if os.Getenv(binaryVariable) == "" {
		if reason := netlab.Missing(); reason != "" {
			t.Skip(reason)
		}
		out, _ := cmdtest.Alone(t, binaryVariable+"="+binary(t))
		t.Log(out)
		return
	}
	c := newCluster(t)
	first := &c.m.jobs["coppice-certificates"].Spec.Template
	c.run("first", first, &first.Spec.InitContainers[0])
	c.store("first")

	coordinator := &c.m.statefulSets["coppice"].Spec.Template
	serves := &coordinator.Spec.Containers[0]
	pods := []string{"coppice-0", "coppice-1", "coppice-2"}
	for _, pod := range pods {
		c.address(pod, coordinator)
	}
	for _, pod := range pods {
		c.start(pod, coordinator, serves)
	}
	worker := &c.m.deployments["coppice-worker"].Spec.Template
	computes := &worker.Spec.Containers[0]
	workers := []string{"coppice-worker-5d4f9c-x2x4q", "coppice-worker-5d4f9c-lk8vz"}
	for _, pod := range workers {
		c.start(pod, worker, computes)
	}
	defer func() {
		for _, pod := range append(workers, pods...) {
			if took := c.stop(pod); took > time.Duration(coordinator.Spec.TerminationGracePeriodSeconds)*time.Second/2 {
				t.Errorf("%s takes %v to end", pod, took)
			}
		}
	}()
	for _, pod := range pods {
		c.ready(pod, serves)
	}
	for _, pod := range workers {
		c.ready(pod, computes)
	}

	client := c.client()
	data := filepath.Join(c.places["client"].dir, "volumes", "data")
	set := cmdtest.ArtificialFile(t, data, "set.csv", 200, 1)
	c.check(errors.Join(os.Chmod(set, 0o644), os.Chmod(data, 0o777)))
	train := []string{"train", "--data", set, "--steps", "400", "-o", "json"}
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, append(train, "--local")...))
	train[2] = "/data/set.csv"
	train = append(train, "--server", "coppice:7100", "--tls-dir", "/certs")
	running := c.start("client", client, &client.Spec.Containers[0], train...)
	for _, pod := range slices.Backward(pods) {
		c.replace(pod, coordinator)
	}
	if err := running.cmd.Wait(); err != nil || len(want) != 64 || !strings.Contains(running.out.String(), want) {
		t.Errorf("%v: want the model %s:\n%s", err, want, running.out)
	}
	c.places["coppice-1"].host = nil // it moves to another node
	c.replace("coppice-1", coordinator)
	c.scrape()
	c.renew(append(workers, pods...))
	c.backup = c.forward()
	c.restore(pods, want)
}

// replace ends a pod and starts it again with its volumes. It returns when the pod is ready.
func (c *cluster) replace(pod string, p *template) {
	began := time.Now()
	ended := c.stop(pod)
	c.start(pod, p, &p.Spec.Containers[0])
	c.ready(pod, &p.Spec.Containers[0])
	c.t.Logf("%s ended after %v, and was ready again after %v", pod, ended, time.Since(began))
}

// store makes secrets of the files of a job, as kubectl does in its other containers.
func (c *cluster) store(job string) {
	work := filepath.Join(c.places[job].dir, "volumes", "work")
	authority := c.secrets["coppice-authority"]
	c.secrets = stored(c.t, c.m, work)
	if authority == nil {
		authority = map[string]string{certs.AuthorityFile: read(c.t, filepath.Join(work, certs.AuthorityFile)),
			certs.AuthorityKey: read(c.t, filepath.Join(work, certs.AuthorityKey))}
	}
	c.secrets["coppice-authority"] = authority
}

// client returns the pod of a client, with the certificate of the user admin.
func (c *cluster) client() *template {
	p := &template{Metadata: meta{Labels: labels{"coppice-client": "true"}}}
	worker := c.m.deployments["coppice-worker"].Spec.Template.Spec
	p.Spec.SecurityContext = worker.SecurityContext
	p.Spec.Volumes = slices.Clone(worker.Volumes)
	for i, v := range p.Spec.Volumes {
		if v.Secret != nil {
			admin := *v.Secret
			admin.SecretName = "coppice-admin"
			p.Spec.Volumes[i].Secret = &admin
		}
	}
	p.Spec.Containers = []container{{VolumeMounts: worker.Containers[0].VolumeMounts}}
	c.prepare("client", p, &p.Spec.Containers[0])
	return p
}

// scrape reads the metrics of each process as the monitors say, from a host with the labels of Prometheus.
func (c *cluster) scrape() {
	c.t.Helper()
	host, err := c.net.Host("prometheus")
	c.check(err)
	c.roles[host.Name] = labels{nameLabel: "prometheus"}
	c.police()
	found := 0
	for _, m := range c.m.monitors {
		for pod, p := range c.places {
			component := c.roles[p.host.Name][componentLabel]
			if component != m.Metadata.Labels[componentLabel] {
				continue
			}
			e := m.Spec.Endpoints[0]
			x := e.TLSConfig
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(c.secrets[x.CA.Secret.Name][x.CA.Secret.Key]))
			pair, err := tls.X509KeyPair([]byte(c.secrets[x.Cert.Secret.Name][x.Cert.Secret.Key]),
				[]byte(c.secrets[x.KeySecret.Name][x.KeySecret.Key]))
			c.check(err)
			transport := &http.Transport{DialContext: from(host), TLSClientConfig: &tls.Config{RootCAs: roots,
				Certificates: []tls.Certificate{pair}, ServerName: x.ServerName}}
			r, err := (&http.Client{Transport: transport}).Get(fmt.Sprintf("%s://%s:%d%s", e.Scheme, p.host.Address(),
				serves[component][e.Port], e.Path))
			c.check(err)
			text, err := io.ReadAll(r.Body)
			r.Body.Close()
			if err != nil || r.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("coppice_build_info")) {
				c.t.Errorf("the metrics of %s: %s, %v", pod, r.Status, err)
			}
			transport.CloseIdleConnections()
			found++
		}
	}
	if found != 5 {
		c.t.Errorf("%d processes are scraped", found)
	}
}

// renew runs the job of each month, and waits until each process shows its new certificate.
func (c *cluster) renew(pods []string) {
	c.t.Helper()
	again := &c.m.cronJobs["coppice-certificates"].Spec.JobTemplate.Spec.Template
	c.run("again", again, &again.Spec.InitContainers[0])
	c.store("again")
	node, err := c.net.Host("node")
	c.check(err)
	for _, pod := range pods {
		p, name, key := &c.m.statefulSets["coppice"].Spec.Template, "coppice-coordinators", pod+".crt"
		if strings.Contains(pod, "worker") {
			p, name, key = &c.m.deployments["coppice-worker"].Spec.Template, "coppice-worker", "tls.crt"
		}
		for _, v := range p.Spec.Volumes {
			if v.Secret != nil {
				c.mount(pod, &v)
			}
		}
		address := fmt.Sprintf("%s:%d", c.places[pod].host.Address(), p.Spec.Containers[0].Ports[0].ContainerPort)
		testkit.Until(c.t, "the new certificate of "+pod, func() bool {
			raw, err := from(node)(c.t.Context(), "tcp", address)
			if err != nil {
				return false
			}
			defer raw.Close()
			secure := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
			if secure.Handshake() != nil {
				return false
			}
			shown := secure.ConnectionState().PeerCertificates[0]
			pair, err := tls.X509KeyPair([]byte(c.secrets[name][key]),
				[]byte(c.secrets[name][strings.TrimSuffix(key, ".crt")+".key"]))
			return err == nil && bytes.Equal(pair.Certificate[0], shown.Raw)
		})
	}
}

// page has commands that forward runs.
const page = "../../docs/guides/kubernetes.md"

// ofPage matches a block of the page that forward runs.
var ofPage = regexp.MustCompile("(?s)<!-- not run: TestPods [^\n]*\n *```\n(.*?\n) *```\n")

// forward uses the cluster from a machine that knows no name and reaches no pod, by a port that is forwarded to a
// coordinator as kubectl port-forward does: in the pod, the connections come from loopback.
func (c *cluster) forward() (backup string) {
	c.t.Helper()
	own, err := c.net.Host("own")
	c.check(err)
	c.roles[own.Name] = labels{}
	c.police()
	pod := c.places["coppice-1"].host
	var l net.Listener
	c.check(own.Do(func() (err error) {
		l, err = net.Listen("tcp", "127.0.0.1:7100")
		return err
	}))
	var forwards sync.WaitGroup
	defer forwards.Wait()
	defer l.Close()
	forwards.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := from(pod)(c.t.Context(), "tcp", "127.0.0.1:7100")
			if err != nil {
				near.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				forwards.Go(func() {
					_, _ = io.Copy(pair[0], pair[1]) // an error: the other side ends too
					pair[0].Close()
				})
			}
		}
	})
	dir := c.t.TempDir()
	admin := filepath.Join(dir, "admin")
	c.check(os.Mkdir(admin, 0o700))
	for name, text := range c.secrets["coppice-admin"] {
		c.check(os.WriteFile(filepath.Join(admin, name), []byte(text), 0o600))
	}
	lines := ofPage.FindAllStringSubmatch(read(c.t, page), -1)
	if len(lines) != 2 {
		c.t.Fatalf("%s has %d blocks that this test runs", page, len(lines))
	}
	for line := range strings.Lines(lines[0][1] + lines[1][1]) {
		words := strings.Fields(line)
		if words[0] != "coppice" {
			c.t.Fatalf("%s: %q is no command of coppice", page, line)
		}
		cmd := exec.Command(os.Getenv(binaryVariable), words[1:]...)
		var out bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
		c.check(own.Start(cmd))
		if err := cmd.Wait(); err != nil {
			c.t.Errorf("%s: %v\n%s", line, err, &out)
		}
		c.t.Logf("%s%s", line, &out)
	}
	return filepath.Join(dir, "backup.tar")
}

// restore makes a new cluster of the backup. It has the model of the first job, and the workers join it.
func (c *cluster) restore(pods []string, model string) {
	c.t.Helper()
	for _, pod := range pods {
		c.stop(pod)
	}
	coordinator := &c.m.statefulSets["coppice"].Spec.Template
	for i, pod := range pods {
		p := c.m.plain[fmt.Sprintf("coppice-restore-%d", i)]
		name := p.Metadata.Name
		c.t.Log(c.run(name, &template{Metadata: p.Metadata, Spec: p.Spec}, &p.Spec.Containers[0]))
		data := filepath.Join("volumes", "data")
		c.check(errors.Join(os.RemoveAll(filepath.Join(c.places[pod].dir, data)),
			os.Rename(filepath.Join(c.places[name].dir, data), filepath.Join(c.places[pod].dir, data))))
		c.start(pod, coordinator, &coordinator.Spec.Containers[0])
	}
	for _, pod := range pods {
		c.ready(pod, &coordinator.Spec.Containers[0])
	}
	client := c.client()
	one := &client.Spec.Containers[0]
	testkit.Until(c.t, "the workers in the restored cluster", func() bool {
		var shown protocol.Cluster
		out := c.run("client", client, one, "cluster", "-o", "json", "--server", "coppice:7100", "--tls-dir", "/certs")
		return json.Unmarshal([]byte(out), &shown) == nil && len(shown.Workers) == 2
	})
	models := c.run("client", client, one, "model", "list", "-o", "json", "--server", "coppice:7100", "--tls-dir",
		"/certs")
	if !strings.Contains(models, model) {
		c.t.Errorf("the restored cluster lacks the model %s: %s", model, models)
	}
}
