package instances

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// checkRefused checks that neither Open nor a call of the client uses the socket.
func checkRefused(t *testing.T, client *Client, path string, words ...string) {
	t.Helper()
	_, err := Open(path)
	checkSentence(t, err, words...)
	_, err = client.Stop(t.Context(), machine)
	checkSentence(t, err, words...)
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v is no refusal", err)
	}
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestSocketThatOthersMayWriteIsRefused(t *testing.T) {
	for _, mode := range []fs.FileMode{0o660, 0o606, 0o620, 0o602, 0o777} {
		path := filepath.Join(directory(t), "i.sock")
		serve(t, path, Handler(always(Off, nil)))
		client := opened(t, path)
		if _, err := client.Stop(t.Context(), machine); err != nil {
			t.Error(err)
		}
		chmod(t, path, mode)
		checkRefused(t, client, path, "others may write to socket", path, "chmod 0600")
	}
}

// The program behind the socket restarts, and creates the socket with another mode.
func TestNewSocketIsCheckedAgain(t *testing.T) {
	path := filepath.Join(directory(t), "i.sock")
	end := serve(t, path, Handler(always(Off, nil)))
	client := opened(t, path)
	if _, err := client.Stop(t.Context(), machine); err != nil {
		t.Error(err)
	}
	end()
	serve(t, path, Handler(always(Off, nil)))
	chmod(t, path, 0o666)
	checkRefused(t, client, path, "others may write to socket", path)
}

func TestDirectoryThatOthersMayWriteIsRefused(t *testing.T) {
	top := directory(t)
	middle := filepath.Join(top, "run")
	path := filepath.Join(middle, "i.sock")
	if err := os.Mkdir(middle, 0o700); err != nil {
		t.Fatal(err)
	}
	serve(t, path, Handler(always(Off, nil)))
	client := opened(t, path)
	for _, writable := range []string{top, middle} {
		for _, mode := range []fs.FileMode{0o777, 0o770, 0o707} {
			chmod(t, writable, mode)
			checkRefused(t, client, path, "others may replace the socket", writable, "0700", "medium: Memory")
		}
		chmod(t, writable, 0o777|fs.ModeSticky)
		if _, err := client.Stop(t.Context(), machine); err != nil {
			t.Errorf("a directory with the sticky bit: %v", err)
		}
	}
}

// The directory is refused before the program starts: until then another user could serve the socket.
func TestDirectoryIsCheckedBeforeSocketExists(t *testing.T) {
	folder := directory(t)
	chmod(t, folder, 0o777)
	_, err := Open(filepath.Join(folder, "i.sock"))
	checkSentence(t, err, "others may replace the socket", folder)
}

func TestSymbolicLinksAreFollowed(t *testing.T) {
	safe, writable := directory(t), directory(t)
	path := filepath.Join(safe, "i.sock")
	serve(t, path, Handler(always(Off, nil)))
	chmod(t, writable, 0o777)
	link := func(folder, name, target string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, good := range []string{link(safe, "link", "i.sock"), filepath.Join(link(directory(t), "run", safe), "i.sock")} {
		if state, err := opened(t, good).Get(t.Context(), machine); err != nil || state != Off {
			t.Errorf("Get at %s = %s, %v", good, state, err)
		}
	}
	link(writable, "i.sock", path)
	detour := filepath.Join(link(safe, "detour", writable), "i.sock")
	for _, bad := range []string{filepath.Join(writable, "i.sock"), detour, link(safe, "double", detour)} {
		_, err := Open(bad)
		checkSentence(t, err, "others may replace the socket", writable)
	}
	_, err := Open(link(safe, "loop", "loop"))
	checkSentence(t, err, "loop", "symbolic links")
}

func TestOthersFileInSharedDirectoryIsRefused(t *testing.T) {
	folder := directory(t)
	chmod(t, folder, 0o777|fs.ModeSticky)
	path := filepath.Join(folder, "i.sock")
	serve(t, path, Handler(always(Off, nil)))
	w := walk{trusted: func(info fs.FileInfo) bool { return info.Name() != "i.sock" }, links: maxLinks}
	checkSentence(t, w.check(path), path, "belongs to another user", folder)
	chmod(t, folder, 0o700)
	if err := w.check(path); err != nil {
		t.Errorf("a socket in a directory of mode 0700: %v", err)
	}
}

func TestFileThatIsNoSocketIsRefused(t *testing.T) {
	path := filepath.Join(directory(t), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{path, filepath.Dir(path), "/"} {
		_, err := Open(wrong)
		checkSentence(t, err, wrong, "no socket")
	}
	_, err := Open("")
	checkSentence(t, err, "empty")
	_, err = Open(filepath.Join(path, "i.sock"))
	checkSentence(t, err, path, "not a directory")
}

// abandoned creates the socket of a program that was killed.
func abandoned(t *testing.T, path string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = listener.Close()
	chmod(t, path, 0o600)
}

func TestSocketThatNobodyServesIsOneSentence(t *testing.T) {
	path := filepath.Join(directory(t), "i.sock")
	abandoned(t, path)
	_, err := opened(t, path).Get(t.Context(), machine)
	checkSentence(t, err, "no program serves socket "+path, "start the program")
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(directory(t), "i.sock")
	abandoned(t, path)
	serve(t, path, Handler(always(Off, nil)))
	if state, err := opened(t, path).Get(t.Context(), machine); err != nil || state != Off {
		t.Errorf("Get = %s, %v", state, err)
	}
}

func TestServedSocketIsKept(t *testing.T) {
	path := filepath.Join(directory(t), "i.sock")
	serve(t, path, Handler(always(Off, nil)))
	_, err := Listen(path)
	checkSentence(t, err, "another program serves", path)
	if state, err := opened(t, path).Get(t.Context(), machine); err != nil || state != Off {
		t.Errorf("Get = %s, %v", state, err)
	}
}

// What connects in another way may serve it.
func TestSocketOfAnotherTypeIsKept(t *testing.T) {
	path := filepath.Join(directory(t), "i.sock")
	datagrams, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = datagrams.Close() }()
	_, err = Listen(path)
	checkSentence(t, err, "find out who serves socket "+path)
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
	_, err = opened(t, path).Get(t.Context(), machine)
	checkSentence(t, err, "connect to socket "+path)
}

func TestListenKeepsOtherFiles(t *testing.T) {
	path := filepath.Join(directory(t), "file")
	if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Listen(path)
	checkSentence(t, err, path, "no socket")
	if text, err := os.ReadFile(path); err != nil || string(text) != "data" {
		t.Errorf("the file has %q, %v", text, err)
	}
	_, err = Listen(filepath.Join(path+"-absent", "i.sock"))
	checkSentence(t, err, path+"-absent", "no such file or directory")
}
