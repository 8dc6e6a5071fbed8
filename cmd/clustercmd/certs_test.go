package clustercmd

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestCerts: the commands make folders that others accept, and say what is wrong.
func TestCerts(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "certs")
	if e := cmdtest.Run(t, "certs", "node", "a", "--role", "coordinator", "--ca-dir", ca); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "coppice certs init --ca-dir") {
		t.Errorf("without an authority: exit code %d: %s", e.Code, e.Stderr)
	}
	var made issued
	cmdtest.JSON(t, &made, "certs", "init", "--ca-dir", ca, "--name", "prod")
	if made.Identity != "coppice://prod/user/admin?role=admin" || made.Folder != filepath.Join(ca, "admin") {
		t.Errorf("the first admin is %+v", made)
	}
	before, err := os.ReadFile(filepath.Join(ca, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if e := cmdtest.Run(t, "certs", "init", "--ca-dir", ca); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "never overwritten") {
		t.Errorf("a second authority: exit code %d: %s", e.Code, e.Stderr)
	}
	if after, err := os.ReadFile(filepath.Join(ca, "ca.crt")); err != nil || string(after) != string(before) {
		t.Errorf("the authority has changed, error %v", err)
	}
	cmdtest.JSON(t, &made, "certs", "node", "w1", "--role", "worker", "--ca-dir", ca, "--out", filepath.Join(dir, "w1"))
	var checked struct {
		Identity          string
		Accepted, Refused []string
	}
	cmdtest.JSON(t, &checked, "certs", "check", filepath.Join(dir, "w1"))
	if checked.Identity != "coppice://prod/worker/w1" || strings.Join(checked.Accepted, ",") != "HTTP,NATS clients" ||
		strings.Join(checked.Refused, ",") != "Raft,NATS routes" {
		t.Errorf("%+v", checked)
	}
	if out := cmdtest.Works(t, "certs", "show", filepath.Join(dir, "w1")); !strings.Contains(out, checked.Identity) ||
		!strings.Contains(out, "Coppice CA of prod") {
		t.Errorf("show prints %s", out)
	}
	node := []string{"certs", "node", "c", "--role", "coordinator", "--ca-dir", ca}
	for _, c := range []struct {
		args []string
		want string
	}{{[]string{"--host", "host1,10.0.0.1"}, "host1 10.0.0.1"}, {nil, "host1 10.0.0.1"}, {[]string{"--host", "host2"},
		"host2"}, {nil, "host2"}} {
		cmdtest.Works(t, append(node, c.args...)...)
		var shown []certs.Summary
		cmdtest.JSON(t, &shown, "certs", "show", filepath.Join(ca, "c"))
		if got := strings.Join(shown[0].Hosts, " "); got != c.want ||
			!strings.Contains(cmdtest.Works(t, "certs", "show", filepath.Join(ca, "c")), strings.ReplaceAll(c.want, " ", ",")) {
			t.Errorf("%v: the hosts are %s, want %s", c.args, got, c.want)
		}
	}
	if err := os.Chmod(filepath.Join(ca, "c", certs.KeyFile), 0o604); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		text string
	}{
		{[]string{"certs", "check", filepath.Join(ca, "c")}, "tls.key: the mode is 0604"},
		{[]string{"certs", "node", "a.b", "--role", "worker", "--ca-dir", ca}, "want 1 to 64 letters"},
		{[]string{"certs", "client", "a", "--role", "root", "--ca-dir", ca}, "role"},
		{[]string{"certs", "client", "-", "--role", "read", "--ca-dir", ca}, "an unknown caller"},
		{[]string{"certs", "check", ca}, "tls.crt"},
		{[]string{"cluster", "--server", "127.0.0.1:1", "--tls-dir", ca}, "--tls-dir"},
		{[]string{"coordinator", "--dir", dir, "--insecure", "--tls-dir", filepath.Join(dir, "w1")}, "exclude each other"},
		{[]string{"coordinator", "--dir", filepath.Join(dir, "x"), "--tls-dir", filepath.Join(dir, "w1")},
			"coppice://prod/worker/w1"},
	} {
		if e := cmdtest.Run(t, c.args...); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, c.text) {
			t.Errorf("%v: exit code %d: %s", c.args, e.Code, e.Stderr)
		}
	}
}

// TestCertificateQuota: a certificate can have a quota of jobs, which its identity shows. Another one takes its place.
func TestCertificateQuota(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "certs")
	cmdtest.Works(t, "certs", "init", "--ca-dir", ca)
	client := []string{"certs", "client", "ana", "--ca-dir", ca, "--role"}
	for _, c := range []struct {
		args []string
		want string
	}{{[]string{"submit", "--quota", "10"}, "?role=submit&quota=10"}, {[]string{"admin", "--quota", "4294967295"},
		"?role=admin&quota=4294967295"}, {[]string{"submit"}, "?role=submit"}} {
		var made issued
		cmdtest.JSON(t, &made, append(client, c.args...)...)
		if out := cmdtest.Works(t, "certs", "check", filepath.Join(ca, "ana")); made.Identity != "coppice://coppice/user/ana"+
			c.want || !strings.Contains(out, made.Identity) {
			t.Errorf("%v: %s\n%s", c.args, made.Identity, out)
		}
	}
	for _, args := range [][]string{{"read", "--quota", "1"}, {"submit", "--quota", "-1"},
		{"submit", "--quota", "4294967296"}} {
		if e := cmdtest.Run(t, append(client, args...)...); e.Code != cli.ExitUsage ||
			!strings.Contains(e.Stderr, "--quota") {
			t.Errorf("%v: exit code %d: %s", args, e.Code, e.Stderr)
		}
	}
}

// TestValid: --valid says how long certificates are valid, at most as long as their authority.
func TestValid(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "certs")
	for _, c := range []struct {
		args []string
		want time.Duration
	}{
		{[]string{"init", "--valid", "12h"}, 12 * time.Hour},
		{[]string{"node", "w", "--role", "worker"}, 90 * 24 * time.Hour},
		{[]string{"node", "w", "--role", "worker", "--valid", "1w"}, 7 * 24 * time.Hour},
		{[]string{"client", "ana", "--role", "read", "--valid", "1h"}, time.Hour},
		{[]string{"client", "ana", "--role", "read", "--valid", "3650d"}, certs.AuthorityLife},
	} {
		var made issued
		cmdtest.JSON(t, &made, append(append([]string{"certs"}, c.args...), "--ca-dir", ca)...)
		if got := time.Until(made.Until); got > c.want || got < c.want-10*time.Minute {
			t.Errorf("%v: valid for %v", c.args, got)
		}
	}
	var list []issued
	cmdtest.JSON(t, &list, "certs", "cluster", "--name", "coppice", "--coordinators", "a=h", "--valid", "2d",
		"--ca-dir", ca)
	for _, one := range list {
		if got := time.Until(one.Until).Round(time.Hour); got != 48*time.Hour {
			t.Errorf("%s: valid for %v", one.Identity, got)
		}
	}
	for _, valid := range []string{"0", "59m", "3651d", "x", "-1d"} {
		for _, args := range [][]string{{"init"}, {"client", "eve", "--role", "read"}, {"cluster", "--coordinators", "a=h"}} {
			e := cmdtest.Run(t, append(append([]string{"certs"}, args...), "--ca-dir", ca+"x", "--valid="+valid)...)
			if _, err := os.Stat(ca + "x"); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "--valid") || err == nil {
				t.Errorf("%v --valid %s: exit code %d: %s, folder: %v", args, valid, e.Code, e.Stderr, err)
			}
		}
	}
}

// TestCertsCluster: one command makes all certificates, and makes them again with the same authority.
func TestCertsCluster(t *testing.T) {
	dir := t.TempDir()
	ca, out := filepath.Join(dir, "ca"), filepath.Join(dir, "out")
	args := []string{"certs", "cluster", "--ca-dir", ca, "--out", out, "--name", "prod", "--coordinators",
		"a=host1,b=host2,a=10.0.0.1", "--pools", "w,gpu", "--users", "ana=submit,prometheus=read"}
	var first, again []issued
	cmdtest.JSON(t, &first, args...)
	var names []string
	for _, one := range first {
		names = append(names, strings.TrimPrefix(one.Identity, "coppice://prod/"))
		source, err := certs.Open(one.Folder, nil)
		if err != nil || source.Identity().String() != one.Identity || filepath.Dir(one.Folder) != out {
			t.Errorf("%+v: %v", one, err)
		}
	}
	if got := strings.Join(names, " "); got != "coordinator/a coordinator/b pool/w pool/gpu user/ana?role=submit "+
		"user/prometheus?role=read" {
		t.Errorf("issued %s", got)
	}
	for host, name := range map[string]string{"host1": "a", "10.0.0.1": "a", "host2": "b", "gpu": "gpu"} {
		source, err := certs.Open(filepath.Join(out, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := source.Own().VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	before := cmdtest.Read(t, filepath.Join(ca, certs.AuthorityFile))
	cmdtest.JSON(t, &again, args...)
	if cmdtest.Read(t, filepath.Join(ca, certs.AuthorityFile)) != before ||
		cmdtest.Read(t, filepath.Join(out, "a", certs.AuthorityFile)) != before {
		t.Error("the authority has changed")
	}
	for i := range again {
		if again[i].Identity != first[i].Identity || again[i].Serial == first[i].Serial {
			t.Errorf("first %+v, then %+v", first[i], again[i])
		}
	}
	if _, err := os.Stat(filepath.Join(out, certs.AuthorityKey)); err == nil {
		t.Error("the key of the authority is in the folder of the certificates")
	}
	for flags, says := range map[string]string{
		"--coordinators a":                          `--coordinators "a": want NAME=HOST`,
		"--coordinators a=":                         `--coordinators "a=": want NAME=HOST`,
		"--coordinators a=h --pools a":              `--pools "a": coppice://coppice/coordinator/a has the same name`,
		"--coordinators a=h --pools w=h":            `--pools "w=h": the identity is not valid`,
		"--coordinators a=h --users x":              `--users "x": want NAME=ROLE`,
		"--coordinators a=h --users x=root":         `--users "x=root": the identity is not valid`,
		"--coordinators a=h --users x=read,x=admin": `--users "x=admin"`,
		"--coordinators a.b=h":                      `--coordinators "a.b=h"`,
	} {
		none := filepath.Join(dir, "none")
		e := cmdtest.Run(t, append([]string{"certs", "cluster", "--ca-dir", none}, strings.Fields(flags)...)...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, says) {
			t.Errorf("%s: exit code %d: %s", flags, e.Code, e.Stderr)
		}
		if _, err := os.Stat(none); err == nil {
			t.Errorf("%s: a folder was made", flags)
		}
	}
	if e := cmdtest.Run(t, "certs", "cluster", "--ca-dir", ca, "--coordinators", "a=h"); e.Code != cli.ExitUsage ||
		!strings.Contains(e.Stderr, "is of the cluster prod") {
		t.Errorf("another name: exit code %d: %s", e.Code, e.Stderr)
	}
}

// TestSecureCluster: a cluster that the documented commands make trains a model with the digest
// of --local.
func TestSecureCluster(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "certs")
	cmdtest.Works(t, "certs", "init", "--ca-dir", ca)
	cmdtest.Works(t, "certs", "node", "a", "--role", "coordinator", "--host", "127.0.0.1", "--ca-dir", ca)
	cmdtest.Works(t, "certs", "node", "gpu", "--role", "pool", "--ca-dir", ca)
	address, data := testkit.FreeAddress(t), cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	ends := make(chan cmdtest.Ended, 2)
	for _, args := range [][]string{
		{"coordinator", "--dir", filepath.Join(dir, "a"), "--peers", "a=" + address, "--tls-dir", filepath.Join(ca, "a")},
		{"worker", "--join", address, "--dir", filepath.Join(dir, "w"), "--tls-dir", filepath.Join(ca, "gpu"), "--listen",
			"0.0.0.0:0"},
	} {
		go func() { ends <- cmdtest.RunContext(ctx, args...) }()
	}
	defer func() {
		cancel()
		for range 2 {
			if e := testkit.Receive(t, "the end of a service", ends); e.Code != cli.ExitOK && e.Code != cli.ExitSignal+2 {
				t.Errorf("exit code %d: %s", e.Code, e.Stderr)
			}
		}
	}()
	admin := []string{"--server", address, "--tls-dir", filepath.Join(ca, "admin")}
	var c protocol.Cluster
	testkit.Until(t, "the worker", func() bool {
		e := cmdtest.Run(t, append([]string{"cluster", "-o", "json"}, admin...)...)
		return e.Code == cli.ExitOK && json.Unmarshal([]byte(e.Stdout), &c) == nil && len(c.Workers) == 1
	})
	if name := c.Workers[0].ID; !strings.HasPrefix(name, "gpu-") || c.Insecure {
		t.Errorf("the worker is %s; insecure: %v", name, c.Insecure)
	}
	job := []string{"train", "--data", data, "--algorithm", "ldlf", "--steps", "50"}
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, append(job, "--local")...))
	if got := cmdtest.ModelDigest(t, cmdtest.Run(t, append(job, admin...)...)); got != want {
		t.Errorf("digest %s, --local has %s", got, want)
	}
	checkRevocation(t, admin, filepath.Join(ca, "gpu"))
	e := cmdtest.Run(t, "cluster", "--server", address)
	if e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "uses TLS") {
		t.Errorf("without certificates: exit code %d: %s", e.Code, e.Stderr)
	}
}

// checkRevocation revokes the certificate in a folder, and looks for the record of it.
func checkRevocation(t *testing.T, admin []string, folder string) {
	t.Helper()
	var shown []struct{ Serial string }
	cmdtest.JSON(t, &shown, "certs", "show", folder)
	serial := shown[0].Serial
	cmdtest.Works(t, append([]string{"certs", "revoke", folder}, admin...)...)
	// once more, as other programs write it
	cmdtest.Works(t, append([]string{"certs", "revoke", "0" + strings.ToUpper(serial)}, admin...)...)
	var revoked []protocol.Revocation
	if cmdtest.JSON(t, &revoked, append([]string{"certs", "revoked"}, admin...)...); len(revoked) != 1 ||
		revoked[0].Serial != serial || !strings.HasSuffix(revoked[0].Identity, "/pool/gpu") || revoked[0].Until == 0 {
		t.Errorf("revoked are %+v", revoked)
	}
	if out := cmdtest.Works(t, append([]string{"audit", "--limit", "5", "--since", "1h", "--caller", "admin"},
		admin...)...); !strings.Contains(out, "POST /v1/revocations") || !strings.Contains(out, "/pool/gpu") {
		t.Errorf("audit prints %s", out)
	}
	var records []shownRecord
	if cmdtest.JSON(t, &records, append([]string{"audit", "--since", "1d", "--caller", "admin"},
		admin...)...); len(records) == 0 || records[0].Result != "allowed" {
		t.Errorf("audit prints %+v", records)
	}
	if out := cmdtest.Works(t, append([]string{"audit", "--refused", "--caller", "admin"},
		admin...)...); strings.Contains(out, "admin") {
		t.Errorf("audit --refused prints %s", out)
	}
	for text, args := range map[string][]string{
		"neither a file nor a serial number": {"certs", "revoke", "xyz"}, "no certificate of a process": {"certs", "revoke",
			filepath.Join(folder, "ca.crt")}, "--limit": {"audit", "--limit", "0"},
	} {
		if e := cmdtest.Run(t, append(args, admin...)...); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, text) {
			t.Errorf("%v: exit code %d: %s", args, e.Code, e.Stderr)
		}
	}
	if e := cmdtest.Run(t, append([]string{"certs", "revoke", admin[len(admin)-1]},
		admin...)...); e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "with another certificate") {
		t.Errorf("the own certificate: exit code %d: %s", e.Code, e.Stderr)
	}
}

// TestInsecure: an address of all interfaces is refused without certificates. With --insecure
// the cluster says so.
func TestInsecure(t *testing.T) {
	address := testkit.FreeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	args := []string{"coordinator", "--dir", filepath.Join(t.TempDir(), "a"), "--peers", "a=" + address, "--http",
		"0.0.0.0:" + port}
	if e := cmdtest.Run(t, args...); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "--tls-dir") ||
		!strings.Contains(e.Stderr, "--insecure") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	end := make(chan cmdtest.Ended, 1)
	go func() { end <- cmdtest.RunContext(ctx, append(args, "--insecure")...) }()
	defer func() {
		cancel()
		testkit.Receive(t, "the end of the coordinator", end)
	}()
	testkit.Until(t, "the cluster", func() bool {
		if len(end) > 0 {
			e := <-end
			end <- e
			t.Fatalf("the coordinator has ended: exit code %d: %s", e.Code, e.Stderr)
		}
		return strings.Contains(cmdtest.Run(t, "cluster", "--server", address).Stdout, "insecure")
	})
	var c protocol.Cluster
	if cmdtest.JSON(t, &c, "cluster", "--server", address); !c.Insecure {
		t.Errorf("%+v", c)
	}
}

// TestClusterWithCertificates: each process of a cluster of proc, also a later one, has a certificate and refuses who
// has none.
func TestClusterWithCertificates(t *testing.T) {
	dir := t.TempDir()
	issuer, err := proc.NewCertificates(filepath.Join(dir, "certs"))
	if err != nil {
		t.Fatal(err)
	}
	c := cmdtest.StartWith(t, proc.Config{Dir: dir, Certificates: issuer, Coordinators: 1, Workers: 1})
	if _, err := c.AddWorker(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.AddCoordinator(); err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Context(t)
	if err := c.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	info, err := c.Client().Cluster(ctx)
	if err != nil || info.Insecure || len(info.Workers) != 2 {
		t.Fatalf("%+v, %v", info, err)
	}
	clear := proc.NewObserver(nil, &http.Transport{})
	defer clear.Close()
	for _, address := range []string{c.HTTP(c.Coordinators[0]), c.HTTP(c.Coordinators[1]), info.Workers[0].Metrics,
		info.Workers[1].Metrics} {
		var status int
		testkit.Until(t, address, func() bool {
			status, _, err = c.Observer().Get(ctx, address, "/healthz", 100)
			return err == nil && status == http.StatusOK
		})
		if status, _, err = clear.Get(ctx, address, "/healthz", 100); err != nil || status != http.StatusBadRequest {
			t.Errorf("%s in the clear: status %d, %v", address, status, err)
		}
	}
	cmdtest.Works(t, append([]string{"cluster", "--server", c.Servers()}, issuer.ClientFlags()...)...)
}

// TestMetricsTokenChanges: a worker takes the token that its file has now, and none if the file cannot be used.
func TestMetricsTokenChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(text string, mode os.FileMode) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	const first, second = "a-text-of-prometheus", "another-text-of-prometheus"
	write(first, 0o600)
	c := WorkerCmd{MetricsToken: path, Listen: "127.0.0.1:0"}
	c.TLSDir = "certs"
	token, err := c.metricsToken(func() *slog.Logger { return slog.New(slog.DiscardHandler) })
	if err != nil {
		t.Fatal(err)
	}
	if hash, ok := token(); !ok || hash != sha256.Sum256([]byte(first)) {
		t.Error("the token at the start is not taken")
	}
	write(second, 0o600)
	testkit.Until(t, "the other token", func() bool {
		hash, ok := token()
		return ok && hash == sha256.Sum256([]byte(second))
	})
	write(second, 0o644)
	testkit.Until(t, "no token, because others may read the file", func() bool { _, ok := token(); return !ok })
	write(first, 0o600)
	testkit.Until(t, "the first token again", func() bool {
		hash, ok := token()
		return ok && hash == sha256.Sum256([]byte(first))
	})
}
