package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

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

// packageSizes adds the sizes of the symbols of each package, from the output of go tool nm -size. The largest is first.
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
