package cli

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/internal/garbage"
	"github.com/coppice-ldl/coppice/internal/version"
)

// LibraryCmd runs the commands of a library of another language, which started this process. See docs/design/python.md.
type LibraryCmd struct {
	Socket int `required:"" placeholder:"FD" help:"Number of the inherited socket."`
}

// endWithin is the time in which commands end after the socket has closed.
const endWithin = 2 * time.Second

// Run implements `coppice library`. It returns after the socket has closed.
func (c *LibraryCmd) Run(a *App) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP) // the library decides what an interrupt ends
	f := os.NewFile(uintptr(c.Socket), "socket")
	if f == nil {
		return Usagef("--socket %d: this is not a descriptor", c.Socket)
	}
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return fmt.Errorf("--socket %d: %w", c.Socket, err)
	}
	defer conn.Close()
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return Usagef("--socket %d: this is not a Unix socket", c.Socket)
	}
	defer context.AfterFunc(a.Ctx, func() { conn.Close() })()
	defer garbage.Frugal.Begin()() // once, because a small fit takes less time than this
	l := &library{start: a.again, in: frames{from: socket}, to: socket, running: make(map[uint64]context.CancelCauseFunc)}
	l.send(libraryAnswer{Version: version.String})
	err = l.serve(context.WithoutCancel(a.Ctx))
	if a.Ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

// library is the commands of one socket.
type library struct {
	start Program
	in    frames

	write sync.Mutex // guards writes to to
	to    io.Writer

	mu      sync.Mutex
	running map[uint64]context.CancelCauseFunc
	work    sync.WaitGroup

	folders []string // that serve removes if the library is killed
}

// libraryCall is what the library sends.
type libraryCall struct {
	ID     uint64   `json:"id"`
	Args   []string `json:"args"`
	Names  []string `json:"names"` // of the descriptors, for messages
	Cancel bool     `json:"cancel"`
	Folder string   `json:"folder"` // the first part of the path of a temporary folder to make
	Keep   bool     `json:"keep"`   // true if the library removes its folders
}

// libraryAnswer is what the library receives.
type libraryAnswer struct {
	ID      uint64 `json:"id,omitempty"`
	Out     string `json:"out,omitempty"` // to stdout
	Err     string `json:"err,omitempty"` // to stderr
	Code    *int   `json:"code,omitempty"`
	Version string `json:"version,omitempty"`
}

// serve runs commands until the socket closes, and then ends them.
func (l *library) serve(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	lost := false
	defer func() {
		end(Signalled{syscall.SIGINT})
		ended := make(chan struct{})
		go func() { l.work.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(endWithin):
		}
		for _, folder := range l.folders {
			if lost {
				os.RemoveAll(folder)
			}
		}
	}()
	for {
		text, files, err := l.in.next()
		if err != nil {
			lost = errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET)
			return err
		}
		var c libraryCall
		if err := json.Unmarshal(text, &c); err != nil {
			closeAll(files)
			return fmt.Errorf("the library sent a frame that is not valid: %w", err)
		}
		if c.Folder != "" {
			closeAll(files)
			l.makeFolder(&c)
			continue
		}
		if c.Keep {
			closeAll(files)
			l.folders = nil
			continue
		}
		if c.Cancel {
			l.mu.Lock()
			if cancel := l.running[c.ID]; cancel != nil {
				cancel(Signalled{syscall.SIGINT})
			}
			l.mu.Unlock()
			closeAll(files)
			continue
		}
		one, cancel := context.WithCancelCause(context.WithValue(ctx, jsonErrors{}, true))
		l.mu.Lock()
		l.running[c.ID] = cancel
		l.mu.Unlock()
		l.work.Go(func() {
			l.run(one, &c, files)
			l.mu.Lock()
			delete(l.running, c.ID)
			l.mu.Unlock()
			cancel(nil)
		})
	}
}

// makeFolder makes a temporary folder and sends its path.
func (l *library) makeFolder(c *libraryCall) {
	path, err := os.MkdirTemp(filepath.Dir(c.Folder), filepath.Base(c.Folder))
	if err != nil {
		l.send(libraryAnswer{ID: c.ID, Err: err.Error(), Code: new(ExitFailed)})
		return
	}
	l.folders = append(l.folders, path)
	l.send(libraryAnswer{ID: c.ID, Out: path, Code: new(ExitOK)})
}

var (
	placeholder = regexp.MustCompile(`/dev/fd/@(\d+)`)
	shownPath   = regexp.MustCompile(`/dev/fd/\d+`)
)

// run runs a command.
func (l *library) run(ctx context.Context, c *libraryCall, files []*os.File) {
	defer closeAll(files)
	names := make(map[string]string, len(files))
	for i, f := range files {
		if path := pathOf(f); i < len(c.Names) {
			names[path] = c.Names[i]
		}
	}
	args := make([]string, len(c.Args))
	for i, arg := range c.Args {
		args[i] = placeholder.ReplaceAllStringFunc(arg, func(at string) string {
			n, err := strconv.Atoi(placeholder.FindStringSubmatch(at)[1])
			if err != nil || n >= len(files) {
				return at // the command says that there is no such file
			}
			return pathOf(files[n])
		})
	}
	out := &lines{pass: func(text string) { l.send(libraryAnswer{ID: c.ID, Out: text}) }}
	notes := &lines{pass: func(text string) {
		l.send(libraryAnswer{ID: c.ID, Err: shownPath.ReplaceAllStringFunc(text, func(path string) string {
			if name, ok := names[path]; ok {
				return name
			}
			return path
		})})
	}}
	code := l.start(ctx, args, strings.NewReader(""), out, notes)
	out.flush()
	notes.flush()
	l.send(libraryAnswer{ID: c.ID, Code: &code})
}

// pathOf returns the path of a descriptor.
func pathOf(f *os.File) string { return fmt.Sprintf("/dev/fd/%d", f.Fd()) }

// send sends a frame. An error is not reported: serve finds that the socket is closed.
func (l *library) send(a libraryAnswer) {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // it has texts and numbers only
	}
	frame := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	frame = append(binary.LittleEndian.AppendUint32(frame, 0), text...)
	l.write.Lock()
	defer l.write.Unlock()
	_, _ = l.to.Write(frame)
}

const (
	frameHeader    = 8        // bytes before the JSON of a frame
	maxFrame       = 64 << 20 // bytes of the JSON of a frame
	maxDescriptors = 64       // of a frame
)

// frames reads frames with their descriptors from a socket.
type frames struct {
	from  *net.UnixConn
	bytes []byte
	files []*os.File // received, and not yet of a frame
}

// next returns the JSON and the files of the next frame. The caller closes the files. The error is io.EOF if the socket
// closes between two frames.
func (r *frames) next() (text []byte, files []*os.File, err error) {
	for {
		if len(r.bytes) >= frameHeader {
			size, n := int(binary.LittleEndian.Uint32(r.bytes)), int(binary.LittleEndian.Uint32(r.bytes[4:]))
			switch end := frameHeader + size; {
			case size > maxFrame || n > maxDescriptors:
				return nil, nil, fmt.Errorf("the library sent a frame of %d bytes with %d descriptors; at most %d and %d are "+
					"possible", size, n, maxFrame, maxDescriptors)
			case len(r.bytes) < end:
			case len(r.files) < n:
				return nil, nil, fmt.Errorf("the library sent a frame with %d descriptors, but %d arrived", n, len(r.files))
			default:
				text, r.bytes = append([]byte(nil), r.bytes[frameHeader:end]...), r.bytes[end:]
				files, r.files = r.files[:n:n], r.files[n:]
				return text, files, nil
			}
		}
		if err := r.more(); err != nil {
			closeAll(r.files)
			if errors.Is(err, io.EOF) && len(r.bytes) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, nil, err
		}
	}
}

// more reads bytes and descriptors.
func (r *frames) more() error {
	b, control := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*maxDescriptors))
	n, got, flags, _, err := r.from.ReadMsgUnix(b, control)
	if err != nil {
		return err
	}
	if n == 0 {
		return io.EOF
	}
	r.bytes = append(r.bytes, b[:n]...)
	messages, err := unix.ParseSocketControlMessage(control[:got])
	if err != nil {
		return err
	}
	for i := range messages {
		list, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return err
		}
		for _, fd := range list {
			unix.CloseOnExec(fd)
			r.files = append(r.files, os.NewFile(uintptr(fd), fmt.Sprintf("/dev/fd/%d", fd)))
		}
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return errors.New("too many files are open: descriptors of the library were lost")
	}
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
