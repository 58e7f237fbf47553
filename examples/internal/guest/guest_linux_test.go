package guest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// roleVariable makes a process of this binary a guest or a controller.
const roleVariable = "EXEUNT_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "controller":
		os.Exit(controllerRole(os.Args[1]))
	default:
		os.Exit(guestRole(os.Args[1:]))
	}
}

// guestRole tells file descriptor 4 that it runs, and ends after SIGTERM, unless it is stubborn.
func guestRole(args []string) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	if err := Announce(); err != nil {
		fmt.Println(err)
		return 1
	}
	if _, err := os.NewFile(4, "pipe").WriteString("runs\n"); err != nil {
		fmt.Println(err)
		return 1
	}
	for range signals {
		if len(args) == 0 {
			return 0
		}
	}
	return 1
}

// controllerRole starts a guest that has this process's standard output, and waits to be killed.
func controllerRole(path string) int {
	dir, err := Open(path)
	if err == nil {
		err = dir.Save(Record{UID: uid, Key: "default/a"})
	}
	if err == nil {
		err = os.Setenv(roleVariable, "guest")
	}
	if err == nil {
		_, err = dir.Start(uid, Command{Files: []*os.File{os.Stdout}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}

const uid = types.UID("1b4e28ba-2fa1-11d2-883f-0016d3cca427")

const limit = 30 * time.Second

// newDir returns a state directory with a record.
func newDir(t *testing.T) *Dir {
	t.Helper()
	dir := opened(t, t.TempDir())
	must(t, dir.Save(Record{UID: uid, Key: "default/a"}))
	return dir
}

func opened(t *testing.T, path string) *Dir {
	t.Helper()
	dir, err := Open(path)
	must(t, err)
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// started starts a guest, which ends with the test, and waits until it runs.
func started(t *testing.T, dir *Dir, args ...string) *Process {
	t.Helper()
	t.Setenv(roleVariable, "guest")
	reader, writer, err := os.Pipe()
	must(t, err)
	process, err := dir.Start(uid, Command{Args: args, Files: []*os.File{writer}})
	must(t, err)
	t.Cleanup(func() { must(t, process.PowerOff(syscall.SIGKILL)) })
	awaitLine(t, reader)
	return process
}

// awaitLine waits until the guest at the other end of the pipe runs.
func awaitLine(t *testing.T, reader *os.File) {
	t.Helper()
	must(t, reader.SetReadDeadline(time.Now().Add(limit)))
	if line, err := bufio.NewReader(reader).ReadString('\n'); err != nil || line != "runs\n" {
		t.Fatalf("the guest says %q, %v", line, err)
	}
}

func awaitEnd(t *testing.T, process *Process) {
	t.Helper()
	select {
	case <-process.Ended():
	case <-time.After(limit):
		t.Fatalf("process %d does not end", process.PID)
	}
}

func find(t *testing.T, dir *Dir) *Process {
	t.Helper()
	process, err := dir.Find(uid)
	must(t, err)
	return process
}

func TestGuestIsFoundUntilItEnds(t *testing.T) {
	dir := newDir(t)
	if found := find(t, dir); found != nil {
		t.Fatalf("process %d is a guest before one was started", found.PID)
	}
	process := started(t, dir)
	found := find(t, dir)
	if found == nil || found.PID != process.PID {
		t.Fatalf("found %+v, want process %d", found, process.PID)
	}
	if group, err := syscall.Getpgid(process.PID); err != nil || group != process.PID {
		t.Errorf("the guest is in process group %d, %v", group, err)
	}
	must(t, found.Signal(syscall.SIGTERM))
	awaitEnd(t, found)
	awaitEnd(t, process)
	must(t, found.Signal(syscall.SIGTERM)) // reaches nobody
	must(t, found.Close())
	if found := find(t, dir); found != nil {
		t.Errorf("process %d is found after its end", found.PID)
	}
}

func TestSecondGuestIsRefused(t *testing.T) {
	dir := newDir(t)
	process := started(t, dir)
	if _, err := dir.Start(uid, Command{}); err == nil {
		t.Error("a second guest was started")
	}
	must(t, process.PowerOff(syscall.SIGKILL))
	if again := started(t, dir); again.PID == process.PID {
		t.Errorf("the guest has process ID %d again", again.PID)
	}
}

func TestPowerOffTriesEachSignal(t *testing.T) {
	process := started(t, newDir(t), "stubborn")
	if err := process.PowerOff(syscall.SIGTERM); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("power off without effect: %v", err)
	}
	must(t, process.PowerOff(syscall.SIGTERM, syscall.SIGKILL))
	awaitEnd(t, process)
}

// The guest outlives a controller that is killed, and another one finds it. While it lives nobody else has its lock.
func TestGuestIsFoundAfterKillOfItsController(t *testing.T) {
	path := t.TempDir()
	reader, writer, err := os.Pipe()
	must(t, err)
	first := exec.CommandContext(t.Context(), "/proc/self/exe", path)
	first.Env = append(os.Environ(), roleVariable+"=controller")
	first.Stdout, first.Stderr = writer, os.Stderr
	must(t, first.Start())
	awaitLine(t, reader)
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "another controller") {
		t.Errorf("two controllers have the state directory: %v", err)
	}
	must(t, first.Process.Kill())
	_ = first.Wait() // it was killed

	dir := opened(t, path)
	record, known := dir.Record(uid)
	if !known || record.Key != "default/a" {
		t.Fatalf("record %+v, %t", record, known)
	}
	process := find(t, dir)
	if process == nil {
		t.Fatal("the guest is not found")
	}
	must(t, process.Signal(syscall.SIGTERM))
	awaitEnd(t, process)
	if found := find(t, dir); found != nil {
		t.Errorf("process %d is found after its end", found.PID)
	}
}

// The process ID of a guest that has ended may be another process's now.
func TestReusedProcessIDIsNoGuest(t *testing.T) {
	dir := newDir(t)
	bystander := exec.CommandContext(t.Context(), "sleep", "1000")
	must(t, bystander.Start())
	defer func() { _, _ = bystander.Process.Kill(), bystander.Wait() }()
	must(t, os.WriteFile(filepath.Join(dir.of(uid), guestFile), fmt.Appendln(nil, bystander.Process.Pid), 0o600))
	if found := find(t, dir); found != nil {
		t.Errorf("process %d is taken for the guest", found.PID)
	}
}

func TestEndIsUnprovenWithoutFiles(t *testing.T) {
	dir := newDir(t)
	held := filepath.Join(dir.of(uid), guestFile)
	lock, err := os.OpenFile(held, os.O_RDWR, 0)
	must(t, err)
	defer func() { _ = lock.Close() }()
	if locked, err := tryLock(lock); !locked || err != nil {
		t.Fatal(locked, err)
	}
	for name, content := range map[string]string{"starting": "", "written in part": strconv.Itoa(os.Getpid()),
		"no process": "4194305\n", "no number": "x\n"} {
		must(t, os.WriteFile(held, []byte(content), 0o600))
		if found, err := dir.Find(uid); err == nil {
			t.Errorf("%s: found %+v", name, found)
		}
	}
	must(t, os.Remove(held))
	must(t, dir.Save(Record{UID: uid, Key: "default/a", Reported: true}))
	if found, err := dir.Find(uid); err == nil {
		t.Errorf("without file: found %+v", found)
	}
}

func TestRecordsOutliveController(t *testing.T) {
	path := t.TempDir()
	dir := opened(t, path)
	want := Record{UID: uid, Key: "default/a", Deadline: time.Unix(1, 0).UTC(), Forced: "why", Reported: true}
	must(t, dir.Save(Record{UID: uid, Key: "default/a"}))
	must(t, dir.Save(want))
	must(t, dir.Save(Record{UID: "other", Key: "default/b"}))
	must(t, dir.Remove("other"))
	must(t, dir.Close())
	again := opened(t, path)
	if got := again.Records(); len(got) != 1 || got[0] != want {
		t.Errorf("records %+v, want %+v", got, want)
	}
	if _, err := os.Stat(again.of("other")); !os.IsNotExist(err) {
		t.Errorf("what was removed is there: %v", err)
	}
}

func TestBadStateDirectoriesAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	broken := t.TempDir()
	must(t, os.Mkdir(filepath.Join(broken, "a"), 0o700))
	must(t, os.WriteFile(filepath.Join(broken, "a", recordFile), []byte("{"), 0o600))
	for _, path := range []string{file, broken} {
		if _, err := Open(path); err == nil {
			t.Errorf("%s is no state directory", path)
		}
	}
}

// A process that no controller has started has no lock to announce.
func TestGuestByHandIsRefused(t *testing.T) {
	alone := exec.CommandContext(t.Context(), "/proc/self/exe")
	alone.Env = append(os.Environ(), roleVariable+"=guest")
	if output, err := alone.Output(); err == nil || !strings.Contains(string(output), "announce guest") {
		t.Errorf("%v: %s", err, output)
	}
}

func TestStateDirectoryMayHaveBrackets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vm[1]")
	dir, err := Open(path)
	must(t, err)
	must(t, dir.Save(Record{UID: "x", Key: "default/a"}))
	must(t, dir.Close())
	again, err := Open(path)
	must(t, err)
	defer func() { _ = again.Close() }()
	if len(again.Records()) != 1 {
		t.Errorf("records %v after a restart", again.Records())
	}
}

// The state directory may be the root of a disk, with lost+found, or have folders of other users.
func TestFoldersOfOthersAreIgnored(t *testing.T) {
	path := t.TempDir()
	must(t, os.Chmod(filepath.Dir(path), 0o755))
	must(t, os.Chmod(path, 0o777))
	must(t, os.Mkdir(filepath.Join(path, "lost+found"), 0))
	becomeNobody(t)
	dir, err := Open(path)
	must(t, err)
	must(t, dir.Save(Record{UID: uid, Key: "default/a"}))
	must(t, dir.Close())
	again, err := Open(path)
	must(t, err)
	defer func() { must(t, again.Close()) }()
	if len(again.Records()) != 1 {
		t.Errorf("records %v", again.Records())
	}
}

// becomeNobody takes the rights of root in the file system from the thread of the test.
func becomeNobody(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	runtime.LockOSThread() // which ends with the test
	must(t, unix.Setfsuid(nobody))
	t.Cleanup(func() { must(t, unix.Setfsuid(0)) })
}
