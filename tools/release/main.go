// Command release writes all files of a release to an empty folder:
//
//	go run ./tools/release --out DIR                       all files
//	go run ./tools/release --out DIR --only linux/amd64    the files of one system, for a test
//
// The files are archives for Linux and macOS, packages for Debian and RPM, an image, the wheels of the Python library,
// a software bill of materials, the licenses of other software, and SHA256SUMS. The same commit gives the same files,
// byte for byte, with the same version of Go. SOURCE_DATE_EPOCH, or else the time of the commit, is the time of all
// files.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, os.Args[1:])
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "release:", err)
	if errors.As(err, new(usageError)) {
		os.Exit(2)
	}
	os.Exit(1)
}

// usageError is an error about the flags.
type usageError struct{ error }

// run does what the arguments say.
func run(ctx context.Context, w io.Writer, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	out := flags.String("out", "", "folder for the files; it must be empty or missing")
	only := flags.String("only", "", "systems to release, separated by commas, such as linux/amd64 (default: all)")
	allow := flags.Bool("allow-modified", false, "release changes that are not in a commit; coppice --version says so")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	switch {
	case flags.NArg() > 0:
		return usageError{fmt.Errorf("%q: want only flags", flags.Arg(0))}
	case *out == "":
		return usageError{errors.New("--out is missing: want the folder for the files")}
	}
	chosen := platforms
	if *only != "" {
		chosen = strings.Split(*only, ",")
	}
	for _, p := range chosen {
		if !slices.Contains(platforms, p) {
			return usageError{fmt.Errorf("--only: there is no release for %q; want %s", p, strings.Join(platforms, ", "))}
		}
	}
	dir, err := filepath.Abs(*out)
	if err != nil {
		return err
	}
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		return usageError{fmt.Errorf("--out %s: want an empty folder, but it has %s", *out, there[0].Name())}
	}
	s, err := findSource(ctx, *allow)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return s.release(ctx, w, dir, chosen)
}

// source is the repository that is released.
type source struct {
	root, commit, goRoot, cache string
	id                          identity // without an architecture
}

// output runs a command in a folder and returns its output without spaces around it.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	text, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(text)), err
}

// findSource describes the repository that the working directory is in. Without allow, changes that are not in a
// commit are an error.
func findSource(ctx context.Context, allow bool) (*source, error) {
	s := &source{}
	places, err := output(ctx, "", "go", "env", "GOMOD", "GOROOT", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(places, "\n")
	if len(lines) != 3 {
		return nil, fmt.Errorf("go env: want three lines, got %q", places)
	}
	s.root, s.goRoot, s.cache = filepath.Dir(lines[0]), lines[1], lines[2]
	if _, err := os.Stat(filepath.Join(s.root, "cmd", "coppice")); err != nil {
		return nil, fmt.Errorf("want the repository of Coppice as the working directory: %w", err)
	}
	changes, err := output(ctx, s.root, "git", "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changes != "" && !allow {
		return nil, fmt.Errorf("the repository has changes that are not in a commit; commit them, or give "+
			"--allow-modified\n%s", changes)
	}
	committed, err := output(ctx, s.root, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return nil, err
	}
	commit, seconds, _ := strings.Cut(committed, " ")
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds = epoch
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || at < 0 {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH=%s: want a number of seconds", seconds)
	}
	s.commit, s.id = commit, identity{version: version.String, at: time.Unix(at, 0).UTC()}
	return s, nil
}

// platforms are the systems for which there are binaries.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// build builds a binary for each of the platforms into a folder, and returns them by platform.
func (s *source) build(ctx context.Context, built string, chosen []string) (map[string][]byte, error) {
	binaries := make(map[string][]byte)
	for _, p := range chosen {
		system, arch, _ := strings.Cut(p, "/")
		name := filepath.Join(built, "coppice-"+system+"-"+arch)
		c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", name,
			"./cmd/coppice")
		c.Dir = s.root
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1",
			"GOARM64=v8.0")
		if text, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build for %s: %w\n%s", p, err, text)
		}
		binary, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		commit, err := commitIn(binary)
		if err != nil {
			return nil, fmt.Errorf("the binary for %s: %w", p, err)
		}
		if commit != s.commit {
			return nil, fmt.Errorf("the binary for %s has commit %q, want %s; Go finds the commit in a clone, not in a "+
				"worktree of git", p, commit, s.commit)
		}
		binaries[p] = binary
	}
	return binaries, nil
}

// release builds the binaries of the platforms, and writes all files to a folder. SHA256SUMS comes last.
func (s *source) release(ctx context.Context, w io.Writer, dir string, chosen []string) error {
	built, err := os.MkdirTemp("", "coppice-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(built)
	binaries, err := s.build(ctx, built, chosen)
	if err != nil {
		return err
	}
	modules, goVersion, err := modulesIn(binaries)
	if err != nil {
		return err
	}
	terms, err := notices(goVersion, only(os.DirFS(s.goRoot), "LICENSE", "PATENTS"), modules,
		func(m module) (fs.FS, error) { return inCache(s.cache, m) })
	if err != nil {
		return err
	}
	var sums strings.Builder
	write := func(name string, body []byte, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(body), name)
		fmt.Fprintf(w, "%11d bytes  %s\n", len(body), filepath.Join(dir, name))
		return os.WriteFile(filepath.Join(dir, name), body, 0o644)
	}
	bill, err := bom(s.id, goVersion, modules)
	if err := errors.Join(write("coppice-"+s.id.version+".cdx.json", bill, err),
		write("THIRD_PARTY_NOTICES.txt", terms, nil)); err != nil {
		return err
	}
	shared, err := readShared(os.DirFS(s.root), s.id, terms)
	if err != nil {
		return err
	}
	inImage := make(map[string][]byte)
	for _, p := range chosen {
		system, arch, _ := strings.Cut(p, "/")
		id, binary := identity{s.id.version, s.id.at, arch}, binaries[p]
		folder := strings.Join([]string{"coppice", id.version, system, arch}, "_")
		body, err := archive(id, folder, shared.archived(system, binary))
		if err := write(folder+".tar.gz", body, err); err != nil {
			return err
		}
		if system != "linux" {
			continue
		}
		inImage[arch] = binary
		files, err := shared.installed(binary)
		if err != nil {
			return err
		}
		body, err = deb(id, files)
		if err := write("coppice_"+id.version+"_"+id.arch+".deb", body, err); err != nil {
			return err
		}
		body, err = rpm(id, files)
		if err := write("coppice-"+id.version+"-1."+rpmArchs[id.arch]+".rpm", body, err); err != nil {
			return err
		}
	}
	body, err := image(s.id, s.commit, inImage)
	if err := write("coppice-"+s.id.version+".oci.tar", body, err); err != nil {
		return err
	}
	wheels := filepath.Join(built, "wheels")
	_, err = output(ctx, s.root, "go", "run", "./tools/wheels", "--out", wheels, "--binaries", built, "--only",
		strings.Join(chosen, ",")+",any")
	if err != nil {
		return err
	}
	made, err := os.ReadDir(wheels)
	if err != nil {
		return err
	}
	for _, one := range made {
		body, err := os.ReadFile(filepath.Join(wheels, one.Name()))
		if err := write(one.Name(), body, err); err != nil {
			return err
		}
	}
	return write("SHA256SUMS", []byte(sums.String()), nil)
}

// some is a file system that has only some files of its top folder.
type some struct {
	fs.FS
	names []string
}

// only returns the files of the top folder of files that have these names and exist.
func only(files fs.FS, names ...string) fs.FS { return some{files, names} }

// ReadDir implements fs.ReadDirFS.
func (s some) ReadDir(string) (list []fs.DirEntry, err error) {
	for _, name := range s.names {
		if info, err := fs.Stat(s.FS, name); err == nil {
			list = append(list, fs.FileInfoToDirEntry(info))
		}
	}
	return list, nil
}

// texts are the files of a release that are equal for all systems.
type texts struct {
	manual, notices, changes []byte
	completions              map[string][]byte // by shell
	units                    map[string][]byte // the files of deploy/systemd, by name
}

// readShared reads the repository.
func readShared(root fs.FS, id identity, notices []byte) (*texts, error) {
	t := &texts{notices: notices, completions: make(map[string][]byte), units: make(map[string][]byte)}
	page, err := fs.ReadFile(root, "docs/reference/commands.md")
	if err != nil {
		return nil, err
	}
	t.manual = manual(id, string(page))
	if t.changes, err = fs.ReadFile(root, "CHANGELOG.md"); err != nil {
		return nil, err
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if t.completions[shell], err = fs.ReadFile(root, "cmd/commands/completion/coppice."+shell); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"coppice-coordinator.service", "coppice-worker.service", "sysusers.conf",
		"coordinator.env", "worker.env"} {
		if t.units[name], err = fs.ReadFile(root, "deploy/systemd/"+name); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// archived returns the files of an archive. Archives for Linux have the units of systemd.
func (t *texts) archived(system string, binary []byte) []file {
	files := []file{{name: "coppice", mode: 0o755, body: binary}, {name: "coppice.1", mode: 0o644, body: t.manual},
		{name: "THIRD_PARTY_NOTICES.txt", mode: 0o644, body: t.notices}, {name: "CHANGELOG.md", mode: 0o644, body: t.changes}}
	for shell, body := range t.completions {
		files = append(files, file{name: "completion/coppice." + shell, mode: 0o644, body: body})
	}
	if system == "linux" {
		for name, body := range t.units {
			files = append(files, file{name: "systemd/" + name, mode: 0o644, body: body})
		}
	}
	return files
}

// installed returns the files of a package.
func (t *texts) installed(binary []byte) ([]file, error) {
	manual, err := compressed(t.manual)
	if err != nil {
		return nil, err
	}
	const units = "usr/lib/systemd/system/"
	return []file{
		{name: "etc/coppice/coordinator.env", mode: 0o644, body: t.units["coordinator.env"], config: true},
		{name: "etc/coppice/worker.env", mode: 0o644, body: t.units["worker.env"], config: true},
		{name: "usr/bin/coppice", mode: 0o755, body: binary},
		{name: units + "coppice-coordinator.service", mode: 0o644, body: t.units["coppice-coordinator.service"]},
		{name: units + "coppice-worker.service", mode: 0o644, body: t.units["coppice-worker.service"]},
		{name: "usr/lib/sysusers.d/coppice.conf", mode: 0o644, body: t.units["sysusers.conf"]},
		{name: "usr/share/bash-completion/completions/coppice", mode: 0o644, body: t.completions["bash"]},
		{name: "usr/share/doc/coppice/copyright", mode: 0o644, body: t.notices},
		{name: "usr/share/fish/vendor_completions.d/coppice.fish", mode: 0o644, body: t.completions["fish"]},
		{name: "usr/share/man/man1/coppice.1.gz", mode: 0o644, body: manual},
		{name: "usr/share/zsh/vendor-completions/_coppice", mode: 0o644, body: t.completions["zsh"]},
	}, nil
}
