package kubernetes

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// kubectl runs kubectl without a cluster, and returns what it prints. If it is not installed, the test is skipped.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not installed")
	}
	cmd := exec.CommandContext(t.Context(), "kubectl", args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull, "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v, %s", strings.Join(args, " "), err, err.(*exec.ExitError).Stderr)
	}
	return string(out)
}

// TestOverlays: kubectl renders each folder that the page applies. All objects are in the namespace coppice, and the
// list of coordinators has as many as run.
func TestOverlays(t *testing.T) {
	folders, err := filepath.Glob("overlays/*")
	if err != nil {
		t.Fatal(err)
	}
	replicas := map[string]int{"overlays/cluster": 3, "overlays/single": 1, "overlays/monitored": 3,
		"certificates": 0, "restore": 0}
	if want := append(folders, "certificates", "restore"); len(want) != len(replicas) {
		t.Fatalf("the folders are %v, and %v are tested", want, replicas)
	}
	for dir, n := range replicas {
		var m manifests
		m.add(t, dir, kubectl(t, "kustomize", dir))
		spaces := make(map[string]bool)
		for _, o := range m.objects() {
			spaces[o.Metadata.Namespace] = true
		}
		if d := cmp.Diff([]string{"coppice"}, names(spaces)); d != "" {
			t.Errorf("%s: %s", dir, d)
		}
		if n > 0 {
			peers(t, &m, n)
		}
		for name, p := range m.pods() {
			for _, one := range p.Spec.containers() {
				if _, tag, _ := strings.Cut(one.Image, ":"); tag == "" {
					t.Errorf("%s: %s: the image %s has no tag", dir, name, one.Image)
				}
			}
		}
		for _, b := range m.roleBindings {
			if b.Subjects[0].Namespace != "coppice" {
				t.Errorf("%s: %+v", dir, b)
			}
		}
	}
}

// objects returns what all objects have.
func (m *manifests) objects() (list []*Object) {
	for _, o := range m.services {
		list = append(list, &o.Object)
	}
	for _, o := range m.budgets {
		list = append(list, &o.Object)
	}
	for _, o := range m.statefulSets {
		list = append(list, &o.Object)
	}
	for _, o := range m.deployments {
		list = append(list, &o.Object)
	}
	for _, o := range m.jobs {
		list = append(list, &o.Object)
	}
	for _, o := range m.cronJobs {
		list = append(list, &o.Object)
	}
	for _, o := range m.plain {
		list = append(list, &o.Object)
	}
	for _, o := range m.claims {
		list = append(list, &o.Object)
	}
	for _, o := range m.policies {
		list = append(list, &o.Object)
	}
	for _, o := range m.roles {
		list = append(list, &o.Object)
	}
	for _, o := range m.configMaps {
		list = append(list, &o.Object)
	}
	return list
}

// stored returns the secrets that the jobs make of the files in a folder, by name and key.
func stored(t *testing.T, m *manifests, work string) map[string]map[string]string {
	t.Helper()
	var k kustomization
	strict(t, "coppice-certificates", m.configMaps["coppice-certificates"].Data["kustomization.yaml"], &k)
	all := make(map[string]map[string]string)
	for _, g := range k.SecretGenerator {
		all[g.Name] = make(map[string]string)
		for _, f := range g.Files {
			key, path, _ := strings.Cut(f, "=")
			all[g.Name][key] = read(t, filepath.Join(work, path))
		}
	}
	return all
}

// issueTo runs the first command of the job coppice-certificates with a folder as /work.
func issueTo(t *testing.T, m *manifests, work string) {
	t.Helper()
	var args []string
	for _, arg := range m.jobs["coppice-certificates"].Spec.Template.Spec.InitContainers[0].Args {
		args = append(args, strings.ReplaceAll(arg, "/work", work))
	}
	cmdtest.Works(t, args...)
}

// TestStore: of the files that the binary makes, kubectl makes the secrets that the pods mount.
func TestStore(t *testing.T) {
	m, work := all(t), t.TempDir()
	issueTo(t, m, work)
	want := stored(t, m, work)
	cmdtest.Write(t, work, "kustomization.yaml", m.configMaps["coppice-certificates"].Data["kustomization.yaml"])
	spec := m.jobs["coppice-certificates"].Spec.Template.Spec
	if d := cmp.Diff([]string{"apply", "--kustomize", "/work"}, spec.Containers[0].Args); d != "" {
		t.Fatal(d)
	}
	var made manifests
	made.add(t, "secrets", kubectl(t, "kustomize", work))
	var create []string
	for _, arg := range spec.InitContainers[1].Args {
		create = append(create, strings.ReplaceAll(arg, "/work", work))
	}
	authority := new(secret)
	text := kubectl(t, append(create, "--dry-run=client", "-o", "yaml")...)
	if err := yaml.Unmarshal([]byte(text), authority); err != nil {
		t.Fatal(err)
	}
	made.secrets[authority.Metadata.Name] = authority
	want["coppice-authority"] = map[string]string{"ca.crt": read(t, filepath.Join(work, "ca.crt")),
		"ca.key": read(t, filepath.Join(work, "ca.key"))}
	got := make(map[string]map[string]string)
	for name, s := range made.secrets {
		got[name] = make(map[string]string)
		for key, text := range s.Data {
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			got[name][key] = string(b)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// mountSecret writes the files that a pod has at the volume of a secret.
func mountSecret(t *testing.T, v *volume, secret map[string]string, dir string) {
	t.Helper()
	for path, text := range secretFiles(t, v, secret) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), os.FileMode(v.Secret.DefaultMode)); err != nil {
			t.Fatal(err)
		}
	}
}

// secretFiles returns the files of the volume of a secret, by path.
func secretFiles(t *testing.T, v *volume, secret map[string]string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	for _, item := range v.Secret.Items {
		text, ok := secret[item.Key]
		if !ok {
			t.Fatalf("the secret %s has no %s", v.Secret.SecretName, item.Key)
		}
		files[item.Path] = text
	}
	if len(files) == 0 {
		return secret
	}
	return files
}

// TestProbes runs a coordinator and a worker with the arguments of their pods, on this machine. It probes both as a
// node does, which shows no certificate and verifies none. A coordinator that waits for the others is alive, and not
// ready.
func TestProbes(t *testing.T) {
	m, dir := all(t), t.TempDir()
	for name, p := range m.pods() {
		for _, one := range p.Spec.Containers {
			for _, p := range []*probe{one.StartupProbe, one.LivenessProbe, one.ReadinessProbe} {
				if p != nil && (p.HTTPGet.Port != "http" || p.HTTPGet.Scheme != "HTTPS") {
					t.Fatalf("%s: %+v", name, p.HTTPGet)
				}
			}
		}
	}
	issueTo(t, m, dir)
	secrets := stored(t, m, dir)
	s, w := m.statefulSets["coppice"].Spec.Template.Spec, m.deployments["coppice-worker"].Spec.Template.Spec
	for i, p := range []podSpec{s, w} {
		for _, v := range p.Volumes {
			if v.Secret != nil {
				mountSecret(t, &v, secrets[v.Secret.SecretName], filepath.Join(dir, "pods", []string{"c", "w"}[i], "certs"))
			}
		}
	}
	at, listen := testkit.FreeAddress(t), testkit.FreeAddress(t)
	pairs := []string{"coppice-0.coppice-peers:7100", at, "coppice:7100", at, "=:7500", "=" + listen}
	line := func(c *container, pod, name string) (args []string) {
		own := strings.NewReplacer(append(slices.Clone(pairs), "=/data", "="+filepath.Join(dir, "pods", name, "data"),
			"=/certs", "="+filepath.Join(dir, "pods", name, "certs"))...)
		for _, arg := range c.expand(pod) {
			// The ports follow from --peers, because several tests share this machine.
			if flag, _, _ := strings.Cut(arg, "=:"); !slices.Contains([]string{"--http", "--raft", "--nats-listen",
				"--nats-routes"}, flag) {
				args = append(args, own.Replace(arg))
			}
		}
		return args
	}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	ends := make(chan cmdtest.Ended, 2)
	running := 0
	run := func(args []string) func() {
		alone, stop := context.WithCancel(ctx)
		running++
		go func() { ends <- cmdtest.RunContext(alone, args...) }()
		return func() {
			stop()
			running--
			if e := testkit.Receive(t, "the end of a process", ends); e.Code != cli.ExitSignal+2 && e.Code != cli.ExitOK {
				t.Errorf("%v: exit code %d: %s", args, e.Code, e.Stderr)
			}
		}
	}
	defer func() {
		cancel()
		for range running {
			testkit.Receive(t, "the end of a process", ends)
		}
	}()
	c := &s.Containers[0]
	waits := run(line(c, "coppice-0", "c"))
	testkit.Until(t, "a coordinator that lives", func() bool { return probes(c.LivenessProbe, at) == http.StatusOK })
	if got := probes(c.ReadinessProbe, at); got != http.StatusServiceUnavailable {
		t.Errorf("a coordinator that waits for the others: %d", got)
	}
	waits()
	for i, e := range c.Env {
		if e.Name == "PEERS" {
			c.Env[i].Value, _, _ = strings.Cut(e.Value, ",")
		}
	}
	run(line(c, "coppice-0", "c"))
	testkit.Until(t, "a coordinator that is ready", func() bool {
		return probes(c.ReadinessProbe, at) == http.StatusOK
	})
	worker := &w.Containers[0]
	run(line(worker, "coppice-worker-5d4f9c-x2x4q", "w"))
	testkit.Until(t, "a worker that is ready", func() bool {
		return probes(worker.ReadinessProbe, listen) == http.StatusOK
	})
	for _, p := range []*probe{c.StartupProbe, c.LivenessProbe} {
		if got := probes(p, at); got != http.StatusOK {
			t.Errorf("%s of a coordinator: %d", p.HTTPGet.Path, got)
		}
	}
	for _, p := range []*probe{worker.StartupProbe, worker.LivenessProbe} {
		if got := probes(p, listen); got != http.StatusOK {
			t.Errorf("%s of a worker: %d", p.HTTPGet.Path, got)
		}
	}
}

// probes returns the status of a probe at an address, or 0 if there is no answer.
func probes(p *probe, address string) int { return probed(p, address, (&net.Dialer{}).DialContext) }

// dial makes a connection.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

// probed is probes with connections that with makes.
func probed(p *probe, address string, with dial) int {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DialContext: with}
	defer transport.CloseIdleConnections()
	r, err := (&http.Client{Transport: transport}).Get(strings.ToLower(p.HTTPGet.Scheme) + "://" + address +
		p.HTTPGet.Path)
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return 0
	}
	return r.StatusCode
}
