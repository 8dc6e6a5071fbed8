package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// guarded serves a handler within limits, with a short window.
func guarded(t *testing.T, h http.Handler, l Limits, window time.Duration) string {
	t.Helper()
	web := httptest.NewServer(newGuard(h, l, window))
	t.Cleanup(web.Close)
	return web.Listener.Addr().String()
}

// hand sends the beginning of a request and returns the connection.
func hand(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testkit.Limit))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// statusAndText reads a response.
func statusAndText(t *testing.T, conn net.Conn) (status int, text string) {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// fileNames lists the files of a folder of blobs.
func fileNames(t *testing.T, f *blobs.Folder) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(f.Dir(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestUploadsThatStandStill checks that uploads that stand still, or send a few bytes now
// and then, are ended with status 408. They leave no file, and do not delay another
// upload.
func TestUploadsThatStandStill(t *testing.T) {
	a := newSite(t)
	const window = 200 * time.Millisecond
	h := inClear(a.cfg)
	address := guarded(t, h, Limits{Requests: 100, Bodies: 1 << 20}, window)
	put := func(b []byte, size int) string {
		return fmt.Sprintf("PUT /v1/blobs/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", blobs.Sum(b), size)
	}
	var slow []net.Conn
	for range 4 {
		slow = append(slow, hand(t, address, put([]byte("never"), maxBlob)+"abc"))
	}
	whole := bytes.Repeat([]byte("w"), 100)
	began := time.Now()
	if status, text := statusAndText(t, hand(t, address, put(whole, len(whole))+string(whole))); status != http.StatusOK {
		t.Fatalf("an upload beside them: status %d, %s", status, text)
	}
	if d := time.Since(began); d > 30*time.Second {
		t.Errorf("it took %v", d)
	}
	drips := hand(t, address, put([]byte("drips"), 1<<20))
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(window / 20):
				io.WriteString(drips, "d") // an error: it was ended
			}
		}
	}()
	for _, conn := range append(slow, drips) {
		if status, text := statusAndText(t, conn); status != http.StatusRequestTimeout ||
			!strings.Contains(text, "too slow") {
			t.Errorf("status %d, %s", status, text)
		}
	}
	testkit.Until(t, "files without a name", func() bool { return len(fileNames(t, a.cfg.Blobs.Folder)) == 1 })
}

// TestUploadsThatEnd checks that an upload leaves no file and takes no quota if its
// client goes away, or if it is larger than announced or than the quota.
func TestUploadsThatEnd(t *testing.T) {
	a := newSite(t)
	a.cfg.Quotas.BlobBytes = 1 << 20
	address := guarded(t, inClear(a.cfg), Limits{Requests: 100, Bodies: 1 << 20}, time.Minute)
	b := bytes.Repeat([]byte("w"), 900<<10)
	head := fmt.Sprintf("PUT /v1/blobs/%s HTTP/1.1\r\nHost: x\r\n", blobs.Sum(b))
	hand(t, address, head+"Content-Length: 900000\r\n\r\nabc").Close()
	testkit.Until(t, "an empty folder", func() bool { return len(fileNames(t, a.cfg.Blobs.Folder)) == 0 })
	big := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", 2<<20) + strings.Repeat("x", 2<<20)
	conn := hand(t, address, head)
	go io.WriteString(conn, big)
	if status, text := statusAndText(t, conn); status != http.StatusInsufficientStorage ||
		!strings.Contains(text, "--max-blob-bytes") {
		t.Errorf("more than the quota: status %d, %s", status, text)
	}
	testkit.Until(t, "an empty folder again", func() bool { return len(fileNames(t, a.cfg.Blobs.Folder)) == 0 })
	conn = hand(t, address, head+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(b)))
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	if status, text := statusAndText(t, conn); status != http.StatusOK {
		t.Errorf("within the quota: status %d, %s", status, text)
	}
}

// TestRequestsAreBounded checks that urgent requests get through while too many requests
// are answered, and others once there is room.
func TestRequestsAreBounded(t *testing.T) {
	a := newSite(t)
	address := guarded(t, inClear(a.cfg), Limits{Requests: 3, Bodies: 1 << 20}, time.Minute)
	var held []net.Conn
	for range 2 {
		held = append(held, hand(t, address, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nExpect: "+
			"100-continue\r\n\r\n"))
	}
	for _, conn := range held { // it is being read
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
			t.Fatalf("%q, %v", line, err)
		}
	}
	get := func(path string) (int, string) {
		return statusAndText(t, hand(t, address, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"))
	}
	if status, text := get("/v1/jobs"); status != http.StatusServiceUnavailable ||
		!strings.Contains(text, "--max-connections") {
		t.Errorf("a third request of this caller: status %d, %s", status, text)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/v1/cluster?local=true"} {
		if status, text := get(path); status != http.StatusOK {
			t.Errorf("%s: status %d, %s", path, status, text)
		}
	}
	held[0].Close()
	testkit.Until(t, "room", func() bool { status, _ := get("/v1/jobs"); return status == http.StatusOK })
}

// TestBodiesAreBounded checks that bodies that are being read share their room, and give
// it back.
func TestBodiesAreBounded(t *testing.T) {
	a := newSite(t)
	g := newGuard(inClear(a.cfg), Limits{Requests: 100, Bodies: 64 << 10}, time.Minute)
	web := httptest.NewServer(g)
	t.Cleanup(web.Close)
	address := web.Listener.Addr().String()
	post := func(size int) string {
		return fmt.Sprintf("POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size)
	}
	first := hand(t, address, post(12<<10)+`{"token":"`+strings.Repeat("x", 10<<10))
	testkit.Until(t, "a body in memory", func() bool { return g.bodies.inUse() > 32<<10 })
	if status, text := statusAndText(t, hand(t, address, post(10<<10)+`{"token":"`+
		strings.Repeat("x", 10<<10-10))); status != http.StatusServiceUnavailable {
		t.Errorf("a second one: status %d, %s", status, text)
	}
	first.Close()
	testkit.Until(t, "room again", func() bool { return g.bodies.inUse() == 0 })
	if status, _ := statusAndText(t, hand(t, address, post(10<<10)+`{"token":"`+
		strings.Repeat("x", 10<<10-10))); status != http.StatusBadRequest {
		t.Errorf("once there is room: status %d", status)
	}
}

// TestAnswersThatAreNotRead checks that a response that is not read is given up. A
// handler that writes nothing for long is not: here it is quiet until the other response,
// which began later, is given up.
func TestAnswersThatAreNotRead(t *testing.T) {
	quiet, gone := make(chan struct{}), make(chan struct{})
	var why error
	address := guarded(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/quiet" {
			close(quiet)
			<-gone
			io.WriteString(w, "said")
			return
		}
		defer close(gone)
		b := make([]byte, 1<<10)
		for why == nil {
			_, why = w.Write(b)
		}
	}), Limits{Requests: 9}, 100*time.Millisecond)
	late := hand(t, address, "GET /quiet HTTP/1.1\r\nHost: x\r\n\r\n")
	testkit.Receive(t, "the handler that says nothing to begin", quiet)
	hand(t, address, "GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
	testkit.Receive(t, "an answer that nobody reads to be given up", gone)
	if !os.IsTimeout(why) {
		t.Error(why)
	}
	if status, text := statusAndText(t, late); status != http.StatusOK || text != "said" {
		t.Errorf("a late answer: status %d, %q", status, text)
	}
}

// TestForwardedUploadsThatStandStill checks that a slow upload that a follower forwards
// is ended with 408 as well.
func TestForwardedUploadsThatStandStill(t *testing.T) {
	a := newSite(t)
	b := a.follower()
	address := guarded(t, inClear(b.cfg), Limits{Requests: 100, Bodies: 1 << 20}, 200*time.Millisecond)
	// The server cancels a request before the read that failed returns. So the answer is now and then 503.
	testkit.Until(t, "an upload that ends with 408", func() bool {
		conn := hand(t, address, fmt.Sprintf("PUT /v1/blobs/%s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc",
			blobs.Sum(nil)))
		status, text := statusAndText(t, conn)
		if status != http.StatusRequestTimeout && status != http.StatusServiceUnavailable {
			t.Errorf("status %d, %s", status, text)
		}
		return status == http.StatusRequestTimeout
	})
	testkit.Until(t, "no file", func() bool { return len(fileNames(t, a.cfg.Blobs.Folder)) == 0 })
}

// deadlines is an answer that keeps what the deadlines of its connection were set to.
type deadlines struct {
	http.ResponseWriter
	read []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.read = append(d.read, t)
	return nil
}

// TestBodyOfARequestThatIsOver checks that a transport that still reads a body after its
// request does not touch the connection, which may have the next request.
func TestBodyOfARequestThatIsOver(t *testing.T) {
	var d deadlines
	b := &pacedBody{body: io.NopCloser(strings.NewReader("whole")), conn: http.NewResponseController(&d),
		window: time.Minute}
	if n, err := b.Read(make([]byte, 2)); n != 2 || err != nil || len(d.read) != 1 {
		t.Fatalf("%d bytes, %v, %d deadlines", n, err, len(d.read))
	}
	b.finish()
	set := len(d.read)
	if n, err := b.Read(make([]byte, 2)); n != 0 || err == nil || len(d.read) != set {
		t.Errorf("%d bytes, %v, %d deadlines", n, err, len(d.read)-set)
	}
}

// TestRequestsAreCounted checks that requests are counted by pattern and status, never by
// path, and that requests that wait are marked.
func TestRequestsAreCounted(t *testing.T) {
	var mu sync.Mutex
	var counted []string
	s := newSite(t)
	cfg := s.cfg
	backups := 0
	cfg.Count = func(route string, code int, took time.Duration, waits bool) {
		mu.Lock()
		defer mu.Unlock()
		if took < 0 || took > testkit.Limit {
			t.Errorf("%s took %v", route, took)
		}
		counted = append(counted, fmt.Sprint(route, " ", code, " ", waits))
	}
	cfg.Backed = func() { backups++ }
	c := serve(t, "a", cfg)
	s.put("art", 100)
	j := c.submit("job")
	c.get("POST", "/v1/jobs/job/cancel", nil, nil)
	lines := c.watch("job")
	if last := <-lines.ch; last.State != protocol.Cancelled {
		t.Errorf("watched %+v", last)
	}
	var blob []byte
	c.get("GET", "/v1/backup", nil, &blob)
	c.get("GET", "/v1/cluster?local=true&wait_ms=1", nil, nil)
	for path, method := range map[string]string{"/v1/jobs/none": "GET", "/etc/passwd": "GET", "/v1/jobs": "BREW"} {
		c.ask(method, path, nil).Body.Close()
	}
	want := []string{
		"GET /v1/backup 200 false", "GET /v1/cluster 200 true", "GET /v1/jobs/{job} 404 false",
		"GET /v1/jobs/{job}/changes 200 true",
		"POST /v1/jobs 200 false", "POST /v1/jobs/{job}/cancel 200 false", "other 404 false", "other 405 false",
	}
	testkit.Until(t, "all counted", func() bool { mu.Lock(); defer mu.Unlock(); return len(counted) == len(want) })
	slices.Sort(counted)
	if !slices.Equal(counted, want) {
		t.Errorf("counted %q, want %q", counted, want)
	}
	if backups != 1 || j.ID == 0 || len(blob) == 0 {
		t.Errorf("%d backups", backups)
	}
}

// TestCountedKeepsTheWriter checks that handlers still reach the connection.
func TestCountedKeepsTheWriter(t *testing.T) {
	s := newSite(t)
	s.cfg.Count = func(string, int, time.Duration, bool) {}
	c := serve(t, "a", s.cfg)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		rc := http.NewResponseController(w)
		if rc.Flush() != nil || rc.SetWriteDeadline(time.Now().Add(testkit.Limit)) != nil ||
			rc.SetReadDeadline(time.Time{}) != nil {
			t.Error("the connection is out of reach")
		}
	})
	c.web.Config.Handler = counted(mux, c.cfg.Count)
	c.get("GET", "/", nil, new([]byte))
}
