package commands

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// scan is a cluster with TLS in processes of its own, and all that was seen of it.
type scan struct {
	t       *testing.T
	dir     string            // all files; below it, only the folder secrets has secrets
	secrets map[string]string // what nothing may show, by name
	seen    map[string][]byte // by name
	address string
	lived   []*exec.Cmd // that run
}

// secret writes a secret to a file of its own.
func (s *scan) secret(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, "secrets", name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.learn(name, path)
	return path
}

// learn notes the secret in a file. Of a token it is the last part.
func (s *scan) learn(name, path string) {
	s.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	text := strings.TrimSpace(string(b))
	s.secrets[name] = text[strings.LastIndex(text, "_")+1:]
}

// service starts a service. Its log is collected at its end.
func (s *scan) service(args ...string) {
	s.t.Helper()
	cmd, stdout, stderr := cmdtest.Process(s.t, s.dir, append(args, "--log-level", "debug")...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.lived = append(s.lived, cmd)
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		s.seen["the log of the "+args[0]] = slices.Concat(stdout.Bytes(), stderr.Bytes())
	})
}

// runs runs a command in a process, looks at the process, and returns what the command printed.
func (s *scan) runs(code int, args ...string) string {
	s.t.Helper()
	cmd, stdout, stderr := cmdtest.Process(s.t, s.dir, args...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.process(cmd)
	_ = cmd.Wait()
	what := "coppice " + strings.Join(args, " ")
	if cmd.ProcessState.ExitCode() != code {
		s.t.Fatalf("%s: exit code %d: %s", what, cmd.ProcessState.ExitCode(), stderr)
	}
	s.seen[what+", stderr"] = stderr.Bytes()
	s.seen[what+", stdout"] = stdout.Bytes()
	return stdout.String()
}

// process notes what every user of the machine may see of a process, and its environment.
func (s *scan) process(cmd *exec.Cmd) {
	for _, name := range []string{"cmdline", "environ"} {
		path := fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, name)
		if b, err := os.ReadFile(path); err == nil { // the process may have ended
			s.seen[fmt.Sprintf("%s of %v", path, cmd.Args[1:])] = b
		}
	}
}

// metrics notes the page of metrics of a server, which is read with a bearer token or a certificate.
func (s *scan) metrics(address, tlsDir, bearer string) {
	s.t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if bearer == "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(tlsDir, certs.CertFile), filepath.Join(tlsDir, certs.KeyFile))
		if err != nil {
			s.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", "https://"+address+"/metrics", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !bytes.Contains(b, []byte("coppice_")) {
		s.t.Fatalf("metrics of %s: %s, %v", address, response.Status, err)
	}
	s.seen["metrics of "+address] = b
}

// revoke revokes a token twice. The second time, the command says that the token had ended.
func (s *scan) revoke(id string, admin []string) {
	s.t.Helper()
	for _, want := range []string{" is revoked; its open streams", " had ended before: it is revoked since "} {
		if out := s.runs(cli.ExitOK, append([]string{"token", "revoke", id}, admin...)...); !strings.Contains(out, want) {
			s.t.Errorf("token revoke prints %s, want %s", out, want)
		}
	}
	var list []struct{ ID, State string }
	cmdtest.JSON(s.t, &list, append([]string{"token", "list"}, admin...)...)
	for _, one := range list {
		if want := map[bool]string{true: "revoked", false: "valid"}[one.ID == id]; one.State != want {
			s.t.Errorf("%+v, want %s", one, want)
		}
	}
}

// check looks for every secret in everything that was seen, and in every file except the files of the secrets.
func (s *scan) check() {
	s.t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "secrets" {
			return fs.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			s.seen[path], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for where, b := range s.seen {
		for name, secret := range s.secrets {
			if bytes.Contains(b, []byte(secret)) {
				s.t.Errorf("%s has the secret %s", where, name)
			}
		}
	}
	if len(s.secrets) < 6 || len(s.seen) < 40 {
		s.t.Errorf("%d secrets, %d things seen", len(s.secrets), len(s.seen))
	}
}

// TestSecrets: a secret is in its own file and nowhere else: no log, output, page of metrics, process
// list, backup or folder has it.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	s := &scan{t: t, dir: dir, secrets: make(map[string]string), seen: make(map[string][]byte),
		address: testkit.FreeAddress(t)}
	if err := os.MkdirAll(filepath.Join(dir, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	t.Cleanup(s.check) // after the services have ended
	ca := filepath.Join(dir, "secrets", "certs")
	cmdtest.Works(t, "certs", "init", "--ca-dir", ca)
	cmdtest.Works(t, "certs", "node", "a", "--role", "coordinator", "--host", "127.0.0.1", "--ca-dir", ca)
	cmdtest.Works(t, "certs", "node", "w", "--role", "worker", "--host", "127.0.0.1", "--ca-dir", ca)
	scrape := s.secret("metrics", rand.Text())
	listen := testkit.FreeAddress(t)
	s.service("coordinator", "--dir", filepath.Join(dir, "a"), "--peers", "a="+s.address, "--tls-dir",
		filepath.Join(ca, "a"))
	s.service("worker", "--join", s.address, "--id", "w", "--dir", filepath.Join(dir, "w"), "--tls-dir",
		filepath.Join(ca, "w"), "--listen", listen, "--metrics-token-file", scrape)
	admin := []string{"--server", s.address, "--tls-dir", filepath.Join(ca, "admin")}
	testkit.Until(t, "the worker", func() bool {
		return strings.Contains(cmdtest.Run(t, append([]string{"cluster"}, admin...)...).Stdout, "alive")
	})

	path := func(name string) string { return filepath.Join(dir, "secrets", name) }
	create := func(name, role string, more ...string) protocol.Token {
		var made protocol.Token
		args := append([]string{"token", "create", name, "--role", role, "--out", path(name), "-o", "json"}, more...)
		if err := json.Unmarshal([]byte(s.runs(cli.ExitOK, append(args, admin...)...)), &made); err != nil {
			t.Fatal(err)
		}
		s.learn(name, path(name))
		return made
	}
	create("ana", "submit")
	rita := create("rita", "read", "--expires", "1h")
	with := func(file string, args ...string) []string {
		return append(args, "--server", s.address, "--ca-file", filepath.Join(ca, "ca.crt"), "--token-file", file)
	}
	var printed struct {
		Text string `json:"token"`
	} // its own output is the only one with a token
	cmdtest.JSON(t, &printed, append([]string{"token", "create", "bob", "--role", "admin"}, admin...)...)
	bob := s.secret("bob", printed.Text)
	unknown, _, _ := access.NewToken()
	s.secret("unknown", unknown)
	s.secret("broken", "coppice_"+rand.Text())

	data := cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1)
	s.runs(cli.ExitOK, with(path("ana"), "train", "--data", data, "--algorithm", "ldlf", "--steps", "20")...)
	s.runs(cli.ExitOK, with(path("rita"), "job", "list")...)
	s.runs(cli.ExitFailed, with(path("rita"), "job", "prune", "--older-than", "0")...)
	s.runs(cli.ExitFailed, with(path("ana"), "token", "list")...)
	s.runs(cli.ExitOK, with(bob, "token", "list")...)
	s.runs(cli.ExitOK, with(bob, "context", "set", "prod")...)
	s.runs(cli.ExitOK, "job", "list", "--context", "prod", "-o", "json")
	s.runs(cli.ExitOK, with(bob, "config", "show", "cluster")...)
	s.runs(cli.ExitFailed, with(path("unknown"), "job", "list")...)
	s.runs(cli.ExitUsage, with(path("broken"), "job", "list", "-o", "json")...)
	s.runs(cli.ExitUsage, "job", "list", "--server", "http://"+s.address, "--token-file", bob, "--ca-file",
		filepath.Join(ca, "ca.crt"))
	backup := filepath.Join(dir, "b.backup")
	s.runs(cli.ExitOK, with(bob, "backup", backup)...)
	if out := s.runs(cli.ExitOK, "restore", backup, "--dir", filepath.Join(dir, "restored")); !strings.Contains(out,
		"0 certificates revoked, as of the backup; revoke later ones again") {
		t.Errorf("restore prints %s", out)
	}
	s.revoke(rita.ID, admin)
	if e := cmdtest.Run(t, with(path("rita"), "job", "list")...); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "coppice token create") {
		t.Errorf("a revoked token: exit code %d: %s", e.Code, e.Stderr)
	}
	s.runs(cli.ExitOK, "token", "create", "--help")
	s.metrics(s.address, filepath.Join(ca, "admin"), "")
	s.metrics(listen, filepath.Join(ca, "admin"), s.secrets["metrics"])
	for _, cmd := range s.lived {
		s.process(cmd)
	}
}
