package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/rpmpack"
	"github.com/klauspost/compress/gzip"
)

// file is a file of a package.
type file struct {
	name   string // without a slash at the beginning
	mode   fs.FileMode
	body   []byte
	config bool // true if an upgrade keeps the changes of the administrator
}

// identity says what is released.
type identity struct {
	version string
	at      time.Time // the time of all files
	arch    string    // as Go names it
}

// compressed returns b as gzip writes it, without a name and a time.
func compressed(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// tarball returns an archive of the files, in the order of their names, after the folders that they are in. All belong
// to root. prefix precedes each name. A file whose name ends with a slash is a folder, of the user nobody.
func tarball(prefix string, at time.Time, files []file) ([]byte, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := make(map[string]bool)
	write := func(h *tar.Header, body []byte) error {
		h.ModTime, h.Format = at, tar.FormatGNU
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		_, err := w.Write(body)
		return err
	}
	for _, f := range files {
		for i := range len(f.name) - 1 {
			if dir := f.name[:i+1]; f.name[i] == '/' && !made[dir] {
				made[dir] = true
				if err := write(&tar.Header{Typeflag: tar.TypeDir, Name: prefix + dir, Mode: 0o755}, nil); err != nil {
					return nil, err
				}
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: prefix + f.name, Mode: int64(f.mode.Perm()),
			Size: int64(len(f.body))}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag, h.Uid, h.Gid = tar.TypeDir, nobody, nobody
		}
		if err := write(h, f.body); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// archive returns a compressed archive with the files in one folder.
func archive(id identity, folder string, files []file) ([]byte, error) {
	b, err := tarball(folder+"/", id.at, files)
	if err != nil {
		return nil, err
	}
	return compressed(b)
}

// What packages say about Coppice.
const (
	summary     = "train label distribution learning models on one machine or a cluster"
	description = "Coppice trains label distribution learning models with one binary, on one machine or on a cluster " +
		"that loses no work when a machine fails. The units coppice-coordinator and coppice-worker are not started."
	maintainer = "The authors of Coppice <coppice@localhost>"
	homepage   = "https://github.com/coppice-ldl/coppice"
)

// The scripts of packages. They start no service, because a cluster needs addresses and certificates, and restart none,
// because the coordinators of a cluster are restarted one after the other.
const (
	afterInstall = `if command -v systemd-sysusers >/dev/null 2>&1; then systemd-sysusers coppice.conf; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
`
	beforeRemoval = `if [ -d /run/systemd/system ]; then
	systemctl --no-reload disable --now coppice-worker.service coppice-coordinator.service || true
fi
`
	afterRemoval = `if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
`
)

// deb returns a package for Debian: an ar archive with two compressed archives.
func deb(id identity, files []file) ([]byte, error) {
	var conffiles, sums strings.Builder
	size := 0
	for _, f := range files {
		size += (len(f.body) + 1023) / 1024
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.body), f.name)
		if f.config {
			fmt.Fprintf(&conffiles, "/%s\n", f.name)
		}
	}
	// A version of a release candidate is lower than the version: 0.2.0~rc.1.
	control := fmt.Sprintf(`Package: coppice
Version: %s
Architecture: %s
Maintainer: %s
Installed-Size: %d
Recommends: systemd
Section: science
Priority: optional
Homepage: %s
Description: %s
 %s
`, strings.Replace(id.version, "-", "~", 1), id.arch, maintainer, size, homepage, summary, description)
	script := func(text string) []byte { return []byte("#!/bin/sh\nset -e\n" + text) }
	meta, err := archive(id, ".", []file{
		{name: "control", mode: 0o644, body: []byte(control)},
		{name: "conffiles", mode: 0o644, body: []byte(conffiles.String())},
		{name: "md5sums", mode: 0o644, body: []byte(sums.String())},
		{name: "postinst", mode: 0o755, body: script("if [ \"$1\" = configure ]; then\n" + afterInstall + "fi\n")},
		{name: "prerm", mode: 0o755, body: script("if [ \"$1\" = remove ]; then\n" + beforeRemoval + "fi\n")},
		{name: "postrm", mode: 0o755, body: script(afterRemoval)},
	})
	if err != nil {
		return nil, err
	}
	data, err := archive(id, ".", files)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, part := range []struct {
		name string
		body []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", meta}, {"data.tar.gz", data}} {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", part.name, id.at.Unix(), 0, 0, "100644", len(part.body))
		out.Write(part.body)
		if len(part.body)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes(), nil
}

// rpmArchs has the names of architectures in packages for RPM.
var rpmArchs = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// rpm returns a package for RPM.
func rpm(id identity, files []file) ([]byte, error) {
	p, err := rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: "coppice", Summary: summary, Description: description, Version: strings.Replace(id.version, "-", "~", 1),
		Release: "1", Arch: rpmArchs[id.arch], URL: homepage, Licence: "NONE", BuildHost: "localhost", BuildTime: id.at,
		Compressor: "gzip",
	})
	if err != nil {
		return nil, err
	}
	p.AddPostin(afterInstall)
	p.AddPreun("if [ \"$1\" = 0 ]; then\n" + beforeRemoval + "fi\n")
	p.AddPostun(afterRemoval)
	for _, f := range files {
		kind := rpmpack.GenericFile
		if f.config {
			kind = rpmpack.ConfigFile | rpmpack.NoReplaceFile
		}
		name := "/" + strings.Replace(f.name, "zsh/vendor-completions", "zsh/site-functions", 1) // as Fedora has it
		p.AddFile(rpmpack.RPMFile{Name: name, Body: f.body, Mode: uint(f.mode.Perm()), Owner: "root", Group: "root",
			MTime: uint32(id.at.Unix()), Type: kind})
	}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// nobody is the user of the image.
const nobody = 65534

// descriptor refers to a blob of an image.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// image returns an archive of an OCI image layout, with an image for each architecture of the binaries. An image has
// the binary and the folders for volumes, and nothing else, as deploy/Dockerfile makes it.
func image(id identity, commit string, binaries map[string][]byte) ([]byte, error) {
	type object = map[string]any
	const media = "application/vnd.oci.image."
	files := []file{{name: "oci-layout", mode: 0o644, body: []byte(`{"imageLayoutVersion":"1.0.0"}`)}}
	add := func(kind string, body []byte) descriptor {
		sum := fmt.Sprintf("%x", sha256.Sum256(body))
		name := path.Join("blobs/sha256", sum)
		if !slices.ContainsFunc(files, func(f file) bool { return f.name == name }) {
			files = append(files, file{name: name, mode: 0o644, body: body})
		}
		return descriptor{MediaType: media + kind, Digest: "sha256:" + sum, Size: len(body)}
	}
	encode := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // these are texts and numbers
		}
		return b
	}
	labels := object{"org.opencontainers.image.title": "coppice", "org.opencontainers.image.version": id.version,
		"org.opencontainers.image.source": homepage, "org.opencontainers.image.revision": commit}
	var images []descriptor
	archs := make([]string, 0, len(binaries))
	for arch := range binaries {
		archs = append(archs, arch)
	}
	slices.SortFunc(archs, cmp.Compare[string])
	for _, arch := range archs {
		layer, err := tarball("", id.at, []file{
			{name: "coppice", mode: 0o755, body: binaries[arch]},
			{name: "certs/", mode: 0o700}, {name: "data/", mode: 0o700}, {name: "tmp/", mode: 0o700},
		})
		if err != nil {
			return nil, err
		}
		small, err := compressed(layer)
		if err != nil {
			return nil, err
		}
		created := id.at.Format(time.RFC3339)
		config := add("config.v1+json", encode(object{
			"created": created, "architecture": arch, "os": "linux",
			"config": object{"User": fmt.Sprintf("%d:%[1]d", nobody), "Entrypoint": []string{"/coppice"},
				"Volumes": object{"/data": object{}}, "Labels": labels},
			"rootfs":  object{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
			"history": []object{{"created": created, "created_by": "coppice tools/release"}},
		}))
		manifest := add("manifest.v1+json", encode(object{"schemaVersion": 2, "mediaType": media + "manifest.v1+json",
			"config": config, "layers": []descriptor{add("layer.v1.tar+gzip", small)}}))
		manifest.Platform = map[string]string{"architecture": arch, "os": "linux"}
		images = append(images, manifest)
	}
	all := add("index.v1+json", encode(object{"schemaVersion": 2, "mediaType": media + "index.v1+json",
		"manifests": images}))
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": id.version,
		"io.containerd.image.name": "coppice:" + id.version}
	files = append(files, file{name: "index.json", mode: 0o644, body: encode(object{"schemaVersion": 2,
		"mediaType": media + "index.v1+json", "manifests": []descriptor{all}})})
	return tarball("", id.at, files)
}
