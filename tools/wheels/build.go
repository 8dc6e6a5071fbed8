package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/internal/version"
)

// maxBytes is the greatest size of a wheel.
const maxBytes = 17_000_000

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

// write builds the wheel of a platform and writes it to a folder. It returns the name of the file and its size.
func write(ctx context.Context, root, out, wheelVersion string, p platform) (name string, size int, err error) {
	var binary []byte
	if p.system != "" {
		if binary, err = build(ctx, root, p, "-s -w"); err != nil {
			return "", 0, err
		}
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
		return "", 0, fmt.Errorf("%s has %d bytes, at most %d are allowed; see --packages for what takes the space", w.name(), len(body), maxBytes)
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
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags="+linker, "-o", binary, "./cmd/coppice")
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
	return &wheel{version: wheelVersion, tags: tags, pure: binary == nil, description: string(description), files: files}, nil
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
		if generated || base != "py.typed" && ext != ".py" && ext != ".pyi" || strings.HasPrefix(base, "test_") || base == "conftest.py" {
			return nil
		}
		body, err := fs.ReadFile(python, name)
		files = append(files, file{name, 0o644, body})
		return err
	})
	return files, err
}
