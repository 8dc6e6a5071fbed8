// Command wheels builds the wheels of the Python library coppice-ldl: one for each platform, with the binary, and one
// without a binary for all other platforms.
//
//	go run ./tools/wheels --out dist                     all wheels
//	go run ./tools/wheels --out dist --only host         the wheel of this platform
//	go run ./tools/wheels --out dist --only any          the wheel without a binary
//	go run ./tools/wheels --out dist --binaries DIR      all wheels, with binaries that are built already
//	go run ./tools/wheels --packages                     the largest packages of the binary
//
// Equal sources give equal wheels, byte for byte.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, os.Args[1:])
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "wheels:", err)
	var usage usageError
	if errors.As(err, &usage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// usageError is an error about the flags.
type usageError struct{ error }

// run does what the arguments say.
func run(ctx context.Context, w io.Writer, args []string) error {
	flags := flag.NewFlagSet("wheels", flag.ContinueOnError)
	out := flags.String("out", "", "folder for the wheels")
	only := flags.String("only", "", "wheels to build, separated by commas: any, host, or platforms such as linux/amd64 "+
		"(default: all)")
	number := flags.String("version", version.String, "version of the wheels")
	binaries := flags.String("binaries", "", "folder with a binary for each system, such as coppice-linux-amd64, to use "+
		"instead of building them")
	packages := flags.Bool("packages", false, "list the largest packages of the binary instead")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("%q: want only flags", flags.Arg(0))}
	}
	root, err := repository(ctx)
	if err != nil {
		return err
	}
	if *packages {
		return printPackages(ctx, w, root)
	}
	if *out == "" {
		return usageError{errors.New("--out is missing: want the folder for the wheels")}
	}
	chosen, err := choose(*only)
	if err != nil {
		return usageError{err}
	}
	wheelVersion, err := pep440(*number)
	if err != nil {
		return usageError{fmt.Errorf("--version: %w", err)}
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	for _, p := range chosen {
		name, size, err := write(ctx, root, *out, *binaries, wheelVersion, p)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%11d bytes  %s\n", size, filepath.Join(*out, name))
	}
	return nil
}

// maxBytes is the greatest size of a wheel.
const maxBytes = 20_000_000

// repository returns the folder of the module that the working directory is in.
func repository(ctx context.Context) (string, error) {
	text, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(text)))
	if _, err := os.Stat(filepath.Join(root, "cmd", "coppice")); err != nil {
		return "", fmt.Errorf("want the repository of Coppice as the working directory: %w", err)
	}
	return root, nil
}

// write builds the wheel of a platform and writes it to a folder. It returns the name of the file and its size. The
// binary is in the folder binaries, if that is not empty.
func write(ctx context.Context, root, out, binaries, wheelVersion string, p platform) (name string, size int,
	err error) {
	var binary []byte
	switch {
	case p.system == "":
	case binaries != "":
		binary, err = os.ReadFile(filepath.Join(binaries, "coppice-"+p.system+"-"+p.arch))
	default:
		binary, err = build(ctx, root, p, "-s -w")
	}
	if err != nil {
		return "", 0, err
	}
	w, err := assemble(os.DirFS(filepath.Join(root, "python")), wheelVersion, p.tags, binary)
	if err != nil {
		return "", 0, err
	}
	body, err := w.bytes()
	if err != nil {
		return "", 0, err
	}
	if len(body) > maxBytes {
		return "", 0, fmt.Errorf("%s has %d bytes, at most %d are allowed; see --packages for what takes the space", w.name(),
			len(body), maxBytes)
	}
	to := filepath.Join(out, w.name())
	if err := os.WriteFile(to+".partial", body, 0o644); err != nil {
		return "", 0, errors.Join(err, os.Remove(to+".partial"))
	}
	return w.name(), len(body), os.Rename(to+".partial", to)
}

// build builds the binary of a platform as releases do, and returns its bytes.
func build(ctx context.Context, root string, p platform, linker string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "coppice-wheels-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	binary := filepath.Join(folder, "coppice")
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags="+linker, "-o", binary,
		"./cmd/coppice")
	c.Dir = root
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.system, "GOARCH="+p.arch)
	if text, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build for %s: %w\n%s", p.name(), err, text)
	}
	return os.ReadFile(binary)
}

// assemble returns the wheel with the files of the folder python, the generated files, and the binary if there is one.
func assemble(python fs.FS, wheelVersion string, tags []string, binary []byte) (*wheel, error) {
	description, err := fs.ReadFile(python, "README.md")
	if err != nil {
		return nil, err
	}
	files, err := handWritten(python)
	if err != nil {
		return nil, err
	}
	bundled := "False"
	if binary != nil {
		bundled = "True"
		files = append(files, file{"coppice_ldl/bin/coppice", 0o755, binary})
	}
	about := fmt.Sprintf(`"""What the wheel was built with. This file is generated."""

# VERSION is the version of the binary that the library needs.
VERSION = %q
# BUNDLED is true if the wheel has the binary.
BUNDLED = %s
`, version.String, bundled)
	files = append(files,
		file{"coppice_ldl/_build.py", 0o644, []byte(about)},
		file{"coppice_ldl/estimators.py", 0o644, []byte(estimators(registry.All()))},
	)
	return &wheel{version: wheelVersion, tags: tags, pure: binary == nil, description: string(description),
		files: files}, nil
}

// handWritten returns the files of the package that are in the repository, without tests.
func handWritten(python fs.FS) (files []file, err error) {
	err = fs.WalkDir(python, "coppice_ldl", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if base == "tests" || base == "bin" || strings.HasPrefix(base, "__pycache__") || strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			return nil
		}
		ext := path.Ext(base)
		generated := name == "coppice_ldl/_build.py" || name == "coppice_ldl/estimators.py"
		if generated || base != "py.typed" && ext != ".py" && ext != ".pyi" || strings.HasPrefix(base, "test_") ||
			base == "conftest.py" {
			return nil
		}
		body, err := fs.ReadFile(python, name)
		files = append(files, file{name, 0o644, body})
		return err
	})
	return files, err
}

// platform is a system for which there is a wheel.
type platform struct {
	system, arch string   // as Go names them; both are empty for the wheel without a binary
	tags         []string // of the wheel
}

// platforms lists all wheels.
var platforms = []platform{
	{"linux", "amd64", []string{"manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"}},
	{"linux", "arm64", []string{"manylinux_2_17_aarch64", "manylinux2014_aarch64", "musllinux_1_1_aarch64"}},
	{"darwin", "amd64", []string{"macosx_12_0_x86_64"}},
	{"darwin", "arm64", []string{"macosx_12_0_arm64"}},
	{"", "", []string{"any"}},
}

// name returns the word of --only that selects the platform.
func (p platform) name() string {
	if p.system == "" {
		return "any"
	}
	return p.system + "/" + p.arch
}

// choose returns the platforms that --only names.
func choose(only string) (chosen []platform, err error) {
	if only == "" {
		return platforms, nil
	}
	for word := range strings.SplitSeq(only, ",") {
		name := word
		if name == "host" {
			name = runtime.GOOS + "/" + runtime.GOARCH
		}
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.name() == name })
		if i < 0 {
			var names []string
			for _, p := range platforms {
				names = append(names, p.name())
			}
			return nil, fmt.Errorf("--only: there is no wheel for %q; want host, %s", word, strings.Join(names, ", "))
		}
		chosen = append(chosen, platforms[i])
	}
	return chosen, nil
}

// shownPackages is the number of packages that --packages lists.
const shownPackages = 10

// zeroMemory is a symbol of zeros. The file does not have its bytes, but nm lists it as data.
const zeroMemory = "crypto/internal/fips140/drbg.memory"

// packageSize is the number of bytes that the symbols of a package have in the binary.
type packageSize struct {
	name  string
	bytes int64
}

// printPackages builds the binary of this platform with its symbols and lists its largest packages.
func printPackages(ctx context.Context, w io.Writer, root string) error {
	binary, err := build(ctx, root, platform{system: runtime.GOOS, arch: runtime.GOARCH}, "")
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "coppice-wheels-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	name := filepath.Join(folder, "coppice")
	if err := os.WriteFile(name, binary, 0o700); err != nil {
		return err
	}
	symbols, err := exec.CommandContext(ctx, "go", "tool", "nm", "-size", "-sort", "size", name).Output()
	if err != nil {
		return fmt.Errorf("go tool nm: %w", err)
	}
	for i, p := range packageSizes(string(symbols)) {
		if i == shownPackages {
			break
		}
		fmt.Fprintf(w, "%11d bytes  %s\n", p.bytes, p.name)
	}
	return nil
}

// packageSizes adds the sizes of the symbols of each package, from the output of go tool nm -size. The largest is
// first.
func packageSizes(symbols string) []packageSize {
	sums := make(map[string]int64)
	for line := range strings.Lines(symbols) {
		// An address, a size, a kind and a name. Names may have spaces.
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		kind := fields[2]
		if err != nil || kind == "b" || kind == "B" || kind == "U" || fields[3] == zeroMemory {
			continue // no bytes of the file
		}
		sums[packageOf(fields[3])] += size
	}
	sizes := make([]packageSize, 0, len(sums))
	for name, bytes := range sums {
		sizes = append(sizes, packageSize{name, bytes})
	}
	slices.SortFunc(sizes, func(a, b packageSize) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.name, b.name))
	})
	return sizes
}

// packageOf returns the package of a symbol: all up to the first dot after the last slash. Type arguments have
// slashes of their own.
func packageOf(symbol string) string {
	if kind, _, found := strings.Cut(symbol, ":"); found && !strings.ContainsAny(kind, "./") {
		return kind + ":" // of the compiler and the linker, such as type:
	}
	name, _, _ := strings.Cut(symbol, "[")
	at := strings.LastIndex(name, "/") + 1
	if dot := strings.Index(name[at:], "."); dot >= 0 {
		return strings.ReplaceAll(name[:at+dot], "%2e", ".")
	}
	return "(other)"
}
