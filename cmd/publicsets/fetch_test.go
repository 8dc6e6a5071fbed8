package publicsets

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// data are the bytes of the file that the server has. They need several reads.
var data = bytes.Repeat([]byte("0.25,0.75\n"), 100_000)

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// zipped returns a zip archive with data, and files with hostile names.
func zipped(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"../../evil.csv", "/evil.csv", "in/set.csv", "in/other.csv"} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(data)
	}
	link := &zip.FileHeader{Name: "link.csv"}
	link.SetMode(os.ModeSymlink | 0o777)
	w, err := z.CreateHeader(link)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "/etc/passwd")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tarred is zipped for tar.gz.
func tarred(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	for _, name := range []string{"../evil.csv", "./in/set.csv"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		w.Write(data)
	}
	w.WriteHeader(&tar.Header{Name: "link.csv", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})
	w.Close()
	g.Close()
	return b.Bytes()
}

// serve starts a server with files that arrive well and badly.
func serve(t *testing.T) string {
	t.Helper()
	stop := make(chan struct{})
	files := map[string][]byte{"/set.csv": data, "/set.zip": zipped(t), "/set.tgz": tarred(t),
		"/cut.zip": zipped(t)[:2000], "/cut.tgz": tarred(t)[:600]}
	mux := http.NewServeMux()
	for path, b := range files {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(b)))
			w.Write(b)
		})
	}
	mux.HandleFunc("/cut.csv", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data[:len(data)/2])
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/silent.csv", func(w http.ResponseWriter, r *http.Request) {
		w.Write(data[:1000])
		w.(http.Flusher).Flush()
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/endless.csv", func(w http.ResponseWriter, _ *http.Request) {
		for _, err := w.Write(data); err == nil; _, err = w.Write(data) {
		}
	})
	mux.HandleFunc("/moved.csv", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/set.csv", http.StatusFound)
	})
	mux.HandleFunc("/loop.csv", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/loop.csv", http.StatusFound)
	})
	mux.HandleFunc("/ftp.csv", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "ftp://localhost/set.csv", http.StatusFound)
	})
	mux.HandleFunc("/file.csv", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "file:///etc/passwd")
		w.WriteHeader(http.StatusFound)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(stop) })
	return s.URL
}

// names returns the names in a folder.
func names(t *testing.T, folder string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestFetch: the file is stored whole, or an error says why not and nothing is stored.
func TestFetch(t *testing.T) {
	host := serve(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	right := sumOf(data)
	for name, x := range map[string]struct {
		file File
		want string // in the error; empty without an error
	}{
		"right":              {File{Address: "/set.csv"}, ""},
		"right size":         {File{Address: "/set.csv", Bytes: int64(len(data))}, ""},
		"redirect":           {File{Address: "/moved.csv"}, ""},
		"zip":                {File{Address: "/set.zip", Member: "in/set.csv"}, ""},
		"tar.gz":             {File{Address: "/set.tgz", Member: "in/set.csv", Bytes: int64(len(data))}, ""},
		"wrong digest":       {File{Address: "/set.csv", SHA256: digest}, "has the SHA-256 " + right + "; want " + digest},
		"no digest":          {File{Address: "/set.csv", SHA256: "-"}, "want -"},
		"wrong size":         {File{Address: "/set.csv", Bytes: 7}, "the file has 1000000 bytes; the list says 7"},
		"endless":            {File{Address: "/endless.csv", Bytes: 4_000_000}, "the file has more than 4000000 bytes"},
		"cut":                {File{Address: "/cut.csv"}, "/cut.csv: the connection was cut after 488.3 KiB; nothing is stored"},
		"silent":             {File{Address: "/silent.csv"}, "/silent.csv: the server sent nothing for 100ms"},
		"missing":            {File{Address: "/none.csv"}, "/none.csv: the server answers 404 Not Found; --from FILE"},
		"loop":               {File{Address: "/loop.csv"}, "the server redirects more than 5 times"},
		"redirect to ftp":    {File{Address: "/ftp.csv"}, `the server redirects to "ftp://localhost/set.csv": want an address`},
		"redirect to a file": {File{Address: "/file.csv"}, "file:///etc/passwd"},
		"no server":          {File{Address: gone.URL + "/set.csv"}, gone.URL + "/set.csv: dial tcp"},
		"no member":          {File{Address: "/set.zip", Member: "set.csv"}, "/set.zip: set.csv: the archive has no such file"},
		"no member in tar":   {File{Address: "/set.tgz", Member: "set.csv"}, "the archive has no such file"},
		"a link in a zip":    {File{Address: "/set.zip", Member: "link.csv"}, "the archive has no such file"},
		"a link in a tar":    {File{Address: "/set.tgz", Member: "link.csv"}, "the archive has no such file"},
		"large member":       {File{Address: "/set.zip", Member: "in/set.csv", Bytes: 9}, "the file has more than 9 bytes"},
		"digest of a member": {File{Address: "/set.tgz", Member: "in/set.csv", SHA256: digest}, "in/set.csv: the file has"},
		"no archive":         {File{Address: "/set.csv", Member: "a"}, "is neither a zip nor a tar.gz archive"},
		"cut zip":            {File{Address: "/cut.zip", Member: "in/set.csv"}, "/cut.zip: the zip archive cannot be read"},
		"cut tar.gz":         {File{Address: "/cut.tgz", Member: "in/set.csv"}, "/cut.tgz"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			f := NewFetcher(folder, func(string) {})
			if name == "silent" {
				f.quiet = 100 * time.Millisecond
			}
			if strings.HasPrefix(x.file.Address, "/") {
				x.file.Address = host + x.file.Address
			}
			if x.file.Name = "a.csv"; x.file.SHA256 == "" {
				x.file.SHA256 = right
			}
			n, err := f.Fetch(testkit.Context(t), &Set{Files: []File{x.file}})
			if x.want != "" {
				if err == nil || !strings.Contains(err.Error(), x.want) || n != 0 {
					t.Errorf("%d files, %v; want %s", n, err, x.want)
				}
				if left := names(t, folder); len(left) > 0 {
					t.Errorf("the folder has %q", left)
				}
				return
			}
			b, wrong := os.ReadFile(f.Path("a.csv"))
			if err != nil || n != 1 || wrong != nil || !bytes.Equal(b, data) {
				t.Errorf("%d files, %v, %v, %d bytes", n, err, wrong, len(b))
			}
			if left := names(t, folder); len(left) != 1 {
				t.Errorf("the folder has %q", left)
			}
		})
	}
}

// TestFetchThere: a file with the digest is not fetched again, and a file with another digest is not changed.
func TestFetchThere(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Write(data)
	}))
	defer s.Close()
	folder := t.TempDir()
	f := NewFetcher(folder, func(string) {})
	set := &Set{Files: []File{{Name: "a.csv", Address: s.URL, SHA256: sumOf(data)}}}
	for range 2 {
		if _, err := f.Fetch(testkit.Context(t), set); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("%d requests", asked)
	}
	if err := os.WriteFile(f.Path("a.csv"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := f.Fetch(testkit.Context(t), set)
	if err == nil || !strings.Contains(err.Error(), "this file exists with another SHA-256") || asked != 1 {
		t.Errorf("%v; %d requests", err, asked)
	}
	if b, _ := os.ReadFile(f.Path("a.csv")); string(b) != "mine" {
		t.Errorf("the file has %.20q", b)
	}
	if err := os.Remove(f.Path("a.csv")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(f.Path("a.csv"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Fetch(testkit.Context(t), set); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Error(err)
	}
	if err := cmp.Or(os.Remove(f.Path("a.csv")), os.Symlink("nowhere", f.Path("a.csv"))); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Fetch(testkit.Context(t), set); err == nil || !strings.Contains(err.Error(), "is a symbolic link") ||
		asked != 1 {
		t.Errorf("%v; %d requests", err, asked)
	}
}

// TestSlowDisk: a server is not silent while the disk is slow.
func TestSlowDisk(t *testing.T) {
	host := serve(t)
	f := NewFetcher(t.TempDir(), func(string) {})
	f.quiet = 200 * time.Millisecond
	body, _, err := f.open(testkit.Context(t), host+"/set.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * f.quiet)
	if b, err := io.ReadAll(body); err != nil || len(b) != len(data)-1 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// TestFetchMeanwhile: a file that another program makes during the download is not replaced.
func TestFetchMeanwhile(t *testing.T) {
	folder := t.TempDir()
	f := NewFetcher(folder, func(string) {})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := os.WriteFile(f.Path("a.csv"), []byte("mine"), 0o600); err != nil {
			t.Error(err)
		}
		w.Write(data)
	}))
	defer s.Close()
	_, err := f.Fetch(testkit.Context(t), &Set{Files: []File{{Name: "a.csv", Address: s.URL, SHA256: sumOf(data)}}})
	if b, _ := os.ReadFile(f.Path("a.csv")); err == nil || string(b) != "mine" || len(names(t, folder)) != 1 {
		t.Errorf("%v; the file has %.20q", err, b)
	}
}

// TestFetchFiles: the files of a set come from one download of its archive, and only those that are missing.
func TestFetchFiles(t *testing.T) {
	archive, asked := zipped(t), 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Write(archive)
	}))
	defer s.Close()
	f := NewFetcher(t.TempDir(), func(string) {})
	set := &Set{}
	for _, name := range []string{"set.csv", "other.csv"} {
		set.Files = append(set.Files, File{Name: name, Address: s.URL, Member: "in/" + name, SHA256: sumOf(data)})
	}
	for _, want := range []int{2, 1} {
		if n, err := f.Fetch(testkit.Context(t), set); err != nil || n != want {
			t.Errorf("%d files, %v; want %d", n, err, want)
		}
		if err := os.Remove(f.Path("other.csv")); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 2 {
		t.Errorf("%d requests", asked)
	}
}

// TestFetchInterrupted: after the end of the context, nothing remains.
func TestFetchInterrupted(t *testing.T) {
	host := serve(t)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	folder := t.TempDir()
	f := NewFetcher(folder, func(string) { cancel() })
	_, err := f.Fetch(ctx, &Set{Files: []File{{Name: "a.csv", Address: host + "/silent.csv", SHA256: digest}}})
	if err == nil || ctx.Err() == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Error(err)
	}
	if left := names(t, folder); len(left) > 0 {
		t.Errorf("the folder has %q", left)
	}
}

// TestFullDisk: without room for the file, an error says so before or during the download, and nothing remains.
func TestFullDisk(t *testing.T) {
	if err := checkRoom(t.TempDir(), "a.csv", 1<<62); err == nil || !strings.Contains(err.Error(), "no space left: a") {
		t.Error(err)
	}
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=512k"); err != nil { // half of data
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	host := serve(t)
	f := NewFetcher(small, func(string) {})
	for address, file := range map[string]File{
		"/set.csv":     {Bytes: int64(len(data))},        // the length is known
		"/endless.csv": {},                               // it is not
		"/set.zip":     {Member: "in/set.csv"},           // there is room for the archive
		"/set.tgz":     {Member: "in/set.csv", Bytes: 1}, // a size that is too small is another error
	} {
		file.Name, file.Address, file.SHA256 = "a.csv", host+address, sumOf(data)
		_, err := f.Fetch(testkit.Context(t), &Set{Files: []File{file}})
		if want := "no space left"; err == nil || file.Bytes != 1 && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", address, err, want)
		}
		if left := names(t, small); len(left) > 0 {
			t.Errorf("%s: the folder has %q", address, left)
		}
	}
	if _, err := os.Stat(filepath.Join(small, "a.csv")); err == nil {
		t.Error("a file was stored")
	}
}
