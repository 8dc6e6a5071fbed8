package uicmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// shown is a process of coppice ui.
type shown struct {
	*exec.Cmd
	url    string
	stderr *bytes.Buffer
	ended  chan error
}

// show starts a process that shows a folder, and waits for its address.
func show(t *testing.T, env []string, args ...string) *shown {
	t.Helper()
	cmd, _, stderr := cmdtest.Process(t, t.TempDir(), append([]string{"ui"}, args...)...)
	cmd.Env = append(append(cmd.Env, "DISPLAY=", "WAYLAND_DISPLAY=", "BROWSER="), env...)
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &shown{Cmd: cmd, stderr: stderr, ended: make(chan error, 1)}
	if s.url, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	s.url = strings.TrimSpace(s.url)
	go func() { s.ended <- cmd.Wait() }()
	return s
}

// interrupt ends the process, which must exit with 0.
func (s *shown) interrupt(t *testing.T) {
	t.Helper()
	s.Process.Signal(os.Interrupt)
	select {
	case err := <-s.ended:
		if err != nil || strings.Contains(s.stderr.String(), "coppice: ") {
			t.Errorf("%v\n%s", err, s.stderr)
		}
	case <-time.After(testkit.Limit):
		t.Fatal("an interrupt does not end the process")
	}
}

// body asks for a page, with another host if that is not empty.
func body(t *testing.T, method, url, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(testkit.Context(t), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// letIn gives the default client the cookies of a browser that has opened an address.
func letIn(t *testing.T, url string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.Jar = jar
	t.Cleanup(func() { http.DefaultClient.Jar = nil })
	if status, text := body(t, "GET", url, ""); status != 200 || !strings.Contains(text, "</html>") {
		t.Fatalf("status %d: %s", status, text)
	}
}

// TestEntry: without the token of the printed address, or the cookie that a browser gets for it, nothing is shown. The
// token of the browser that the command opens counts once, since other users see the lines of commands.
func TestEntry(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := newEntry(l)
	h := e.protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	get := func(path, cookie string) *http.Response {
		r := httptest.NewRequest("GET", path, nil)
		if cookie != "" {
			r.AddCookie(&http.Cookie{Name: e.name, Value: cookie})
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	for _, path := range []string{"/", "/ui", "/v1/models", "/ui/live/jobs", "/ui/static/x/page.css", "/ui?token=",
		"/ui?token=" + e.cookie, "/ui?token=" + e.token[1:]} {
		for _, cookie := range []string{"", e.token, e.once, "x"} {
			if r := get(path, cookie); r.StatusCode != http.StatusForbidden || len(r.Cookies()) > 0 {
				t.Errorf("%s with the cookie %q: %s", path, cookie, r.Status)
			}
		}
		if r := get(path, e.cookie); r.StatusCode >= 400 {
			t.Errorf("%s with the cookie: %s", path, r.Status)
		}
	}
	for i, status := range []int{http.StatusSeeOther, http.StatusForbidden} {
		if r := get("/ui/jobs?token="+e.once+"&by=seconds", ""); r.StatusCode != status {
			t.Errorf("the token that counts once, time %d: %s", i+1, r.Status)
		}
	}
	for range 2 {
		r := get("/ui/jobs?by=seconds&token="+e.token, "")
		if to := r.Header.Get("Location"); r.StatusCode != http.StatusSeeOther || to != "/ui/jobs?by=seconds" {
			t.Errorf("the token leads to %q: %s", to, r.Status)
		}
		if c := r.Cookies(); len(c) != 1 || c[0].Value != e.cookie || !c[0].HttpOnly ||
			c[0].SameSite != http.SameSiteLaxMode {
			t.Errorf("cookies %v", c)
		}
	}
	e.used.Store(false)
	if r := get("/ui?token="+e.once, e.cookie); r.StatusCode != http.StatusSeeOther {
		t.Errorf("the token that counts once, with the cookie: %s", r.Status)
	}
	if r := get("/ui?token="+e.once, ""); r.StatusCode != http.StatusForbidden {
		t.Errorf("the token that counts once, after a browser with the cookie: %s", r.Status)
	}
	if r := get("//evil.example/x?token="+e.token, ""); strings.HasPrefix(r.Header.Get("Location"), "//") {
		t.Errorf("the token leads to %q", r.Header.Get("Location"))
	}
}

// TestUI: the command shows what is in a folder until an interrupt, which ends open streams, too. Other hosts and
// requests that change something are refused.
func TestUI(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 60, 1)
	cmdtest.Works(t, clitest.NearestNeighbour(data, filepath.Join(dir, "one.model"))...)
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [set.csv]\nfolds: 2\nmethods: [{algorithm: aa-knn, "+
		"settings: {k: 3}}]\n")
	cmdtest.Works(t, "experiment", "run", spec, "--local")
	s := show(t, nil, dir, "--no-browser")
	root, _, _ := strings.Cut(s.url, "/ui?token=")
	letIn(t, s.url)
	for path, says := range map[string]string{"/ui": dir, "/": dir, "/ui/jobs/1": "one", "/v1/experiments/e": `"state":"done"`,
		"/v1/models": `"name":"one"`, "/v1/experiments/e/report?format=fragment": "aa-knn"} {
		if status, text := body(t, "GET", root+path, ""); status != 200 || !strings.Contains(text, says) {
			t.Errorf("%s: status %d: %.300s", path, status, text)
		}
	}
	_, model := body(t, "GET", root+"/ui/download/models/one", "")
	if b, err := os.ReadFile(filepath.Join(dir, "one.model")); err != nil || string(b) != model {
		t.Errorf("%d bytes were downloaded, %v", len(model), err)
	}
	port := root[strings.LastIndexByte(root, ':'):]
	// The client has a cookie for the printed host only.
	for host, status := range map[string]int{"evil.example" + port: 421, "localhost" + port: 403, "LOCALHOST." + port: 403,
		"127.9.9.9": 403, "[::1]" + port: 403, "10.0.0.1" + port: 421, "localhost.evil.example": 421} {
		if got, text := body(t, "GET", root+"/v1/jobs", host); got != status {
			t.Errorf("%s: status %d: %.200s", host, got, text)
		}
	}
	if got, _ := body(t, "POST", root+"/ui/jobs/1/cancel", ""); got != http.StatusMethodNotAllowed {
		t.Errorf("status %d", got)
	}
	stream, err := http.Get(root + "/ui/live/jobs")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	s.interrupt(t)
	if !strings.Contains(s.stderr.String(), "the page shows "+dir) || strings.Contains(s.stderr.String(), "browser") {
		t.Errorf("%s", s.stderr)
	}
}

// TestUIRefuses: a folder or a port that cannot be used ends the command with advice.
func TestUIRefuses(t *testing.T) {
	dir := t.TempDir()
	cmdtest.Write(t, dir, "file", "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"@/none", cli.ExitFailed, []string{"none: no such file or folder"}},
		{"@/file", cli.ExitFailed, []string{"file", "is not a folder"}},
		{fmt.Sprint("@ --page-port ", port), cli.ExitFailed, []string{fmt.Sprint("port ", port, " "), "is in use",
			"--page-port"}},
		{"@ --page-port 65536", cli.ExitUsage, []string{"--page-port", "65535"}},
		{"@ --page-port -1", cli.ExitUsage, []string{"--page-port"}},
		{"@ @", cli.ExitUsage, []string{"unexpected argument"}},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, "@", dir))
		e := cmdtest.Run(t, append([]string{"ui", "--no-browser"}, args...)...)
		if e.Code != c.code || e.Stdout != "" || strings.Count(e.Stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", c.args, e.Code, e.Stderr)
		}
		for _, text := range c.says {
			if !strings.Contains(e.Stderr, text) {
				t.Errorf("%s: %q does not say %q", c.args, e.Stderr, text)
			}
		}
	}
}

// opener writes a program that takes the place of xdg-open, and returns the environment in which it is found.
func opener(t *testing.T, script string) (env []string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"DISPLAY=:9", "PATH=" + dir + ":" + os.Getenv("PATH")}
}

// TestBrowser: the address is opened by the program of the desktop. If that fails, the command says what to do, and
// goes on.
func TestBrowser(t *testing.T) {
	opened := filepath.Join(t.TempDir(), "opened")
	s := show(t, opener(t, "echo \"$@\" > "+opened+".tmp && mv "+opened+".tmp "+opened), t.TempDir())
	testkit.Until(t, "the program of the browser is called", func() bool {
		b, err := os.ReadFile(opened)
		root, token, _ := strings.Cut(s.url, "=")
		own, once, _ := strings.Cut(strings.TrimSpace(string(b)), "=")
		if err == nil && (own != root || once == token || len(once) != len(token)) {
			t.Errorf("%s was opened, not %s", b, s.url)
		}
		return err == nil
	})
	s.interrupt(t)
	if strings.Contains(s.stderr.String(), "no browser") {
		t.Error(s.stderr)
	}
	for _, c := range []struct {
		env []string
		why string
	}{{opener(t, "exit 3"), "exit status 3"}, {nil, "no display"}, {[]string{"DISPLAY=:9", "PATH=/nowhere"},
		"xdg-open is not installed"}} {
		s := show(t, c.env, t.TempDir())
		s.interrupt(t)
		if !strings.Contains(s.stderr.String(), "no browser was opened") || !strings.Contains(s.stderr.String(), c.why) ||
			!strings.Contains(s.stderr.String(), "open "+s.url+" in a browser") {
			t.Errorf("%q: %s", c.why, s.stderr)
		}
	}
}

// TestOpen: the address of a view of a cluster is printed, without a request for what it shows.
func TestOpen(t *testing.T) {
	testkit.WithoutRace(t)
	server := cmdtest.Start(t, 1, 0).Servers()
	for view, path := range map[string]string{
		"": "", "17": "/jobs/17", "a.b": "/jobs/a.b", "jobs": "/jobs", "audit": "/audit",
		"experiment study": "/experiments/study", "job x": "/jobs/x", "model cv/3": "/models/cv/3",
		"worker w?": "/workers/w%3F",
	} {
		args := append([]string{"open", "--print", "--server", server}, strings.Fields(view)...)
		if text := cmdtest.Works(t, args...); text != "http://"+server+"/ui"+path+"\n" {
			t.Errorf("%s: %s", view, text)
		}
	}
	var v struct {
		URL string `json:"url"`
	}
	if cmdtest.JSON(t, &v, "open", "--print", "--server", server); v.URL != "http://"+server+"/ui" {
		t.Error(v)
	}
	for _, view := range []string{"experiment", "job x y", "tree x", "jobs x"} {
		e := cmdtest.Run(t, append([]string{"open", "--server", server}, strings.Fields(view)...)...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "is no view of the page") {
			t.Errorf("%s: exit code %d, %s", view, e.Code, e.Stderr)
		}
	}
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 60, 1)
	submit := append([]string{"job", "submit", "--data", data, "--server", server, "-o", "json"}, cmdtest.Small...)
	var j protocol.JobInfo
	if err := json.Unmarshal([]byte(cmdtest.Works(t, submit...)), &j); err != nil {
		t.Fatal(err)
	}
	if status, text := body(t, "GET", fmt.Sprintf("http://%s/ui/jobs/%d", server, j.ID), ""); status != 200 ||
		!strings.Contains(text, j.Name) {
		t.Errorf("status %d: %.300s", status, text)
	}
	if e := cmdtest.Run(t, "open", "--print", "--server", "127.0.0.1:1"); e.Code != cli.ExitFailed || e.Stdout != "" {
		t.Errorf("exit code %d, %s%s", e.Code, e.Stdout, e.Stderr)
	}
}
