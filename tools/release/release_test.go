package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

var released = identity{version: "0.2.0-rc.1", at: time.Unix(1_700_000_000, 0).UTC(), arch: "arm64"}

const program = "the binary"

// repositoryTexts reads the texts of this repository.
func repositoryTexts(t *testing.T) *texts {
	t.Helper()
	shared, err := readShared(os.DirFS("../.."), released, []byte("terms\n"))
	if err != nil {
		t.Fatal(err)
	}
	return shared
}

// twice makes a file twice and reports if the two differ.
func twice(t *testing.T, make func() ([]byte, error)) []byte {
	t.Helper()
	a, err := make()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := make(); err != nil || !bytes.Equal(a, b) {
		t.Errorf("the second file differs from the first: %v", err)
	}
	return a
}

// unpacked is a file of an archive.
type unpacked struct {
	header *tar.Header
	body   string
}

// untar reads an archive.
func untar(t *testing.T, body []byte) map[string]unpacked {
	t.Helper()
	files := make(map[string]unpacked)
	for r := tar.NewReader(bytes.NewReader(body)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, double := files[h.Name]; double || !h.ModTime.Equal(released.at) {
			t.Errorf("%s: there twice: %v; time %v", h.Name, double, h.ModTime)
		}
		files[h.Name] = unpacked{h, string(b)}
	}
}

// unzip reads what compressed wrote.
func unzip(t *testing.T, body []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestArchive(t *testing.T) {
	shared := repositoryTexts(t)
	for system, units := range map[string]bool{"linux": true, "darwin": false} {
		body := twice(t, func() ([]byte, error) {
			return archive(released, "folder", shared.archived(system, []byte(program)))
		})
		files := untar(t, unzip(t, body))
		if f := files["folder/coppice"]; f.body != program || f.header.Mode != 0o755 || f.header.Uid != 0 {
			t.Errorf("the binary is %+v", f)
		}
		if files["folder/THIRD_PARTY_NOTICES.txt"].body != "terms\n" ||
			!strings.HasPrefix(files["folder/coppice.1"].body, ".TH COPPICE 1") ||
			!strings.Contains(files["folder/completion/coppice.zsh"].body, "compdef") {
			t.Errorf("%s has %q", system, slices.Sorted(maps.Keys(files)))
		}
		if _, has := files["folder/systemd/coppice-worker.service"]; has != units {
			t.Errorf("%s has units: %v", system, has)
		}
	}
}

func TestDeb(t *testing.T) {
	files, err := repositoryTexts(t).installed([]byte(program))
	if err != nil {
		t.Fatal(err)
	}
	body := twice(t, func() ([]byte, error) { return deb(released, files) })
	rest, ok := bytes.CutPrefix(body, []byte("!<arch>\n"))
	if !ok {
		t.Fatalf("the package begins with %q", body[:8])
	}
	parts := make(map[string][]byte)
	for len(rest) > 0 {
		header := string(rest[:60])
		size, err := strconv.Atoi(strings.TrimSpace(header[48:58]))
		if err != nil || header[58:] != "`\n" {
			t.Fatalf("%q: %v", header, err)
		}
		parts[strings.TrimSpace(header[:16])] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	if string(parts["debian-binary"]) != "2.0\n" {
		t.Errorf("debian-binary is %q", parts["debian-binary"])
	}
	control := untar(t, unzip(t, parts["control.tar.gz"]))
	for _, line := range []string{"Package: coppice\n", "Version: 0.2.0~rc.1\n", "Architecture: arm64\n"} {
		if !strings.Contains(control["./control"].body, line) {
			t.Errorf("no %q in\n%s", line, control["./control"].body)
		}
	}
	if got := control["./conffiles"].body; got != "/etc/coppice/coordinator.env\n/etc/coppice/worker.env\n" {
		t.Errorf("conffiles: %q", got)
	}
	for _, script := range []string{"./postinst", "./prerm", "./postrm"} {
		if f := control[script]; f.header == nil || f.header.Mode != 0o755 ||
			exec.Command("sh", "-n", "-c", f.body).Run() != nil {
			t.Errorf("%s: %+v", script, f)
		}
	}
	data := untar(t, unzip(t, parts["data.tar.gz"]))
	if f := data["./usr/bin/coppice"]; f.body != program || f.header.Mode != 0o755 {
		t.Errorf("the binary is %+v", f)
	}
	if d := data["./usr/lib/systemd/"]; d.header == nil || d.header.Typeflag != tar.TypeDir || d.header.Mode != 0o755 {
		t.Errorf("a folder is %+v", d)
	}
	if text := unzip(t, []byte(data["./usr/share/man/man1/coppice.1.gz"].body)); !bytes.HasPrefix(text, []byte(".TH")) {
		t.Errorf("the manual page begins with %.20q", text)
	}
	if tool, err := exec.LookPath("dpkg-deb"); err == nil {
		path := filepath.Join(t.TempDir(), "c.deb")
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(tool, "--field", path, "Version").CombinedOutput(); string(out) != "0.2.0~rc.1\n" {
			t.Errorf("dpkg-deb: %v, %s", err, out)
		}
	}
}

// headerOf reads the entries of a header of RPM that are texts or lists of texts, and returns what follows it.
func headerOf(t *testing.T, b []byte) (entries map[uint32][]string, rest []byte) {
	t.Helper()
	if !bytes.HasPrefix(b, []byte{0x8e, 0xad, 0xe8, 1}) {
		t.Fatalf("a header begins with % x", b[:4])
	}
	number, size := int(binary.BigEndian.Uint32(b[8:])), int(binary.BigEndian.Uint32(b[12:]))
	store := b[16+16*number:]
	entries = make(map[uint32][]string)
	for i := range number {
		e := b[16+16*i:]
		tag, kind, count := binary.BigEndian.Uint32(e), binary.BigEndian.Uint32(e[4:]), binary.BigEndian.Uint32(e[12:])
		if kind != 6 && kind != 8 && kind != 9 {
			continue
		}
		for at := store[binary.BigEndian.Uint32(e[8:]):]; count > 0; count-- {
			text, after, _ := bytes.Cut(at, []byte{0})
			entries[tag], at = append(entries[tag], string(text)), after
		}
	}
	return entries, store[size:]
}

func TestRPM(t *testing.T) {
	files, err := repositoryTexts(t).installed([]byte(program))
	if err != nil {
		t.Fatal(err)
	}
	body := twice(t, func() ([]byte, error) { return rpm(released, files) })
	if !bytes.HasPrefix(body, []byte{0xed, 0xab, 0xee, 0xdb}) {
		t.Fatalf("the package begins with % x", body[:4])
	}
	_, rest := headerOf(t, body[96:])
	header, payload := headerOf(t, rest[(8-(len(body)-96-len(rest))%8)%8:])
	for tag, want := range map[uint32]string{1000: "coppice", 1001: "0.2.0~rc.1", 1002: "1", 1007: "localhost",
		1014: "NONE", 1022: "aarch64", 1024: afterInstall} {
		if got := strings.Join(header[tag], "|"); got != want {
			t.Errorf("tag %d is %q, want %q", tag, got, want)
		}
	}
	names := header[1117]
	for _, name := range []string{"coppice", "coppice-coordinator.service", "coppice-worker.service", "coppice.conf"} {
		if !slices.Contains(names, name) {
			t.Errorf("no %s in %q", name, names)
		}
	}
	if !bytes.Contains(unzip(t, payload), []byte(program)) {
		t.Error("the payload lacks the binary")
	}
}

func TestImage(t *testing.T) {
	binaries := map[string][]byte{"amd64": []byte(program), "arm64": []byte("another")}
	files := untar(t, twice(t, func() ([]byte, error) { return image(released, "0123", binaries) }))
	if got := files["oci-layout"].body; got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout: %s", got)
	}
	// blob reads a blob, whose digest and size a descriptor says.
	blob := func(d descriptor, v any) []byte {
		b := []byte(files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")].body)
		if len(b) != d.Size || fmt.Sprintf("sha256:%x", sha256.Sum256(b)) != d.Digest {
			t.Fatalf("%+v: the blob has %d bytes", d, len(b))
		}
		if v != nil {
			if err := json.Unmarshal(b, v); err != nil {
				t.Fatal(err)
			}
		}
		return b
	}
	var top, all struct{ Manifests []descriptor }
	if err := json.Unmarshal([]byte(files["index.json"].body), &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("%v: %+v", err, top)
	}
	blob(top.Manifests[0], &all)
	for i, arch := range []string{"amd64", "arm64"} {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		blob(all.Manifests[i], &manifest)
		var config struct {
			Architecture string
			Config       struct {
				User       string
				Entrypoint []string
			}
			RootFS struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		blob(manifest.Config, &config)
		layer := unzip(t, blob(manifest.Layers[0], nil))
		if config.Architecture != arch || all.Manifests[i].Platform["architecture"] != arch ||
			config.Config.User != "65534:65534" || config.Config.Entrypoint[0] != "/coppice" ||
			config.RootFS.DiffIDs[0] != fmt.Sprintf("sha256:%x", sha256.Sum256(layer)) {
			t.Errorf("%s: %+v", arch, config)
		}
		root := untar(t, layer)
		if f := root["coppice"]; f.body != string(binaries[arch]) || f.header.Mode != 0o755 || len(root) != 4 {
			t.Errorf("%s has %q: %+v", arch, slices.Sorted(maps.Keys(root)), f)
		}
		if d := root["data/"]; d.header.Typeflag != tar.TypeDir || d.header.Uid != nobody || d.header.Mode != 0o700 {
			t.Errorf("the folder for data is %+v", d.header)
		}
	}
}

// The bill and the notices have the modules of a binary; this test is one.
func TestModules(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	modules, goVersion, err := modulesIn(map[string][]byte{"a": self, "b": self})
	if err != nil {
		t.Fatal(err)
	}
	if commit, err := commitIn(self); err != nil || commit != "" { // go test records none
		t.Errorf("commit %q, %v", commit, err)
	}
	at := slices.IndexFunc(modules, func(m module) bool { return m.path == "github.com/google/rpmpack" })
	if at < 0 || "go"+goVersion != runtime.Version() {
		t.Fatalf("Go %s, modules %v", goVersion, modules)
	}
	var bill struct {
		BOMFormat  string
		Components []struct{ Name, Version, Purl string }
	}
	text := twice(t, func() ([]byte, error) { return bom(released, goVersion, modules) })
	if err := json.Unmarshal(text, &bill); err != nil || bill.BOMFormat != "CycloneDX" ||
		len(bill.Components) != len(modules)+1 || bill.Components[0].Name != "std" ||
		bill.Components[at+1].Purl != "pkg:golang/github.com/google/rpmpack@"+modules[at].version {
		t.Errorf("%v: %s", err, text)
	}
	licensed := fstest.MapFS{"LICENSE": {Data: []byte("text of the license")}, "license.go": {Data: []byte("package")},
		"zstd/COPYING.txt": {Data: []byte("another text")}, "testdata/LICENSE": {Data: []byte("data")}}
	folder := func(module) (fs.FS, error) { return licensed, nil }
	terms := string(twice(t, func() ([]byte, error) { return notices(goVersion, licensed, modules[:1], folder) }))
	if n := strings.Count(terms, "text of the license"); n != 2 || strings.Contains(terms, "package") ||
		!strings.Contains(terms, modules[0].path+" "+modules[0].version+", zstd/COPYING.txt\n") ||
		strings.Contains(terms, "\ndata\n") {
		t.Errorf("notices:\n%s", terms)
	}
	delete(licensed, "LICENSE")
	delete(licensed, "zstd/COPYING.txt")
	ofGo := fstest.MapFS{"LICENSE": {Data: []byte("terms of Go")}}
	if _, err := notices(goVersion, ofGo, modules[:1], folder); err == nil ||
		!strings.Contains(err.Error(), "there is no file with its license") {
		t.Errorf("without a license: %v", err)
	}
	cache := t.TempDir()
	if err := os.MkdirAll(filepath.Join(cache, "example.org", "!name@v1.0.0"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := inCache(cache, module{"example.org/Name", "v1.0.0"}); err != nil {
		t.Error(err)
	}
	if _, err := inCache(cache, module{"example.org/Name", "v1.0.1"}); err == nil {
		t.Error("a module that is not in the cache is found")
	}
}

func TestManual(t *testing.T) {
	page := "# Commands\n\nText with `--flag`, **strong** and [a link](x.md).\n'begins so.\n\n## One two\n\n" +
		"| command | what |\n| --- | --- |\n| `coppice a \\| b` | It does. |\n\n- an item\n\n```\n.code \\ -x\n```\n"
	want := ".PP\nText with \\fB\\-\\-flag\\fR, \\fIstrong\\fR and a link.\n\\&'begins so.\n.PP\n.SH ONE TWO\n.PP\n" +
		".TP\n\\fBcoppice a | b\\fR\nIt does.\n.PP\n.IP \\(bu 2\nan item\n.PP\n.PP\n.nf\n.RS 4\n" +
		"\\&.code \\e \\-x\n.RE\n.fi\n"
	got := string(manual(released, page))
	if !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant at the end\n%s", got, want)
	}
	if !strings.HasPrefix(got, `.TH COPPICE 1 2023-11-14 "Coppice 0.2.0-rc.1"`) {
		t.Errorf("it begins with %.80s", got)
	}
	if all := string(repositoryTexts(t).manual); strings.Contains(all, "`") || strings.Contains(all, "\x00") ||
		!strings.Contains(all, "\n\\fBcoppice worker") {
		t.Errorf("the manual page of this repository is\n%s", all)
	}
}

// A folder with files, a change that is not in a commit, and wrong flags are refused before anything is built.
func TestRefused(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		says string
	}{
		{nil, "--out is missing"},
		{[]string{"--out", full}, "want an empty folder, but it has a"},
		{[]string{"--out", full, "more"}, `"more": want only flags`},
		{[]string{"--out", full, "--only", "linux/amd64,plan9/386"}, `no release for "plan9/386"; want linux/amd64, `},
		{[]string{"--unknown"}, "flag provided but not defined"},
	} {
		err := run(testkit.Context(t), io.Discard, test.args)
		if _, usage := err.(usageError); !usage || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v", test.args, err)
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git := func(args ...string) {
		c := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@localhost"}, args...)...)
		c.Dir, c.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_COMMITTER_DATE=@1700000000 +0000")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "cmd", "coppice"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	git("add", "go.mod")
	git("commit", "-q", "-m", "first")
	t.Chdir(dir)
	t.Setenv("SOURCE_DATE_EPOCH", "")
	if s, err := findSource(testkit.Context(t), false); err != nil || s.id.at.Unix() != 1700000000 || len(s.commit) != 40 {
		t.Errorf("%+v, %v", s, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "12")
	if err := os.WriteFile("more", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := findSource(testkit.Context(t), false); err == nil || !strings.Contains(err.Error(), "?? more") {
		t.Errorf("a new file: %v", err)
	}
	if s, err := findSource(testkit.Context(t), true); err != nil || s.id.at.Unix() != 12 {
		t.Errorf("with --allow-modified: %+v, %v", s, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "soon")
	if _, err := findSource(testkit.Context(t), true); err == nil || !strings.Contains(err.Error(), "=soon: want") {
		t.Errorf("a wrong time: %v", err)
	}
}
