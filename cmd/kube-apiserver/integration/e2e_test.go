package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	kubectldelete "k8s.io/kubectl/pkg/cmd/delete"
	kubectldescribe "k8s.io/kubectl/pkg/cmd/describe"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// The two end-to-end tests of KEP-5673, by name.

// byDefault is how long the controller waits after a plain deletion.
const byDefault = time.Hour

// stopper is a controller that removes the finalizer of each deleted object at its deadline.
type stopper struct {
	k      kind
	mutex  sync.Mutex
	timers map[string]*time.Timer
	// removed is when the finalizer of an object was removed.
	removed map[string]time.Time
}

// run handles all events until ctx ends.
func (c *stopper) run(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.k.s.url+c.k.path("")+"?watch=true", nil)
	if err != nil {
		return err
	}
	go func() {
		response, err := c.k.s.client.Do(request)
		if err != nil {
			if ctx.Err() == nil {
				c.k.t.Error(err)
			}
			return
		}
		defer func() { _ = response.Body.Close() }()
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			event := &unstructured.Unstructured{}
			if json.Unmarshal(scanner.Bytes(), &event.Object) == nil && event.Object["type"] != "DELETED" {
				c.arm(object(event))
			}
		}
	}()
	return nil
}

// arm sets the timer of an object again.
func (c *stopper) arm(object *unstructured.Unstructured) {
	deletion, name := deadline.Of(object), object.GetName()
	if deletion.Kind() == deadline.NotDeleted {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if timer := c.timers[name]; timer != nil {
		timer.Stop()
	}
	c.timers[name] = time.AfterFunc(deletion.Remaining(time.Now(), byDefault), func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if _, done := c.removed[name]; !done {
			c.removed[name] = time.Now()
			c.k.patch(name, withoutFinalizers)
		}
	})
}

func TestEndToEndCustomController(t *testing.T) {
	k := newKind(t, ours(t), "controller.example.com")
	c := &stopper{k: k, timers: map[string]*time.Timer{}, removed: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := c.run(ctx); err != nil {
		t.Fatal(err)
	}
	ends := map[string]time.Time{}
	for _, name := range []string{"graceful", "shortened", "forced", "plain", "long"} {
		k.create(name, finalizer)
	}
	k.delete("plain", "", nil)
	k.graceful("long", 3600)
	ends["graceful"] = deletionOf(k.delete("graceful", 2, nil).body).end
	k.graceful("shortened", 3600)
	ends["shortened"] = deletionOf(k.delete("shortened", 1, nil).body).end
	ends["forced"] = k.delete("forced", 0, nil).body.GetDeletionTimestamp().Time
	for name, end := range ends {
		k.awaitGone(name)
		c.mutex.Lock()
		if at := c.removed[name]; at.Before(end) {
			t.Errorf("%s: the finalizer was removed at %v, before the deadline %v", name, at, end)
		}
		c.mutex.Unlock()
	}
	if got := deletionOf(k.get("long").body); got.field != 3600 {
		t.Errorf("%+v", got)
	}
	k.expect(k.get("plain"), "plain", plain)
}

// kubectl runs a command of kubectl, and returns its output and its errors.
func kubectl(t *testing.T, command func(cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command,
	args ...string) (string, string) {
	t.Helper()
	streams, _, out, errs := genericiooptions.NewTestIOStreams()
	flags := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.WarningHandler = rest.NewWarningWriter(errs, rest.WarningWriterOptions{})
		return config
	})
	kubeconfig, cache := filepath.Join(shared.folder, "ours", "admin.kubeconfig"), t.TempDir()
	flags.KubeConfig, flags.CacheDir = &kubeconfig, &cache
	cmdutil.BehaviorOnFatal(func(message string, code int) { t.Errorf("kubectl %q: %d %s", args, code, message) })
	defer cmdutil.DefaultBehaviorOnFatal()
	run := command(cmdutil.NewFactory(flags), streams)
	run.SetArgs(args)
	run.SetOut(&bytes.Buffer{})
	if err := run.Execute(); err != nil {
		t.Errorf("kubectl %q: %v", args, err)
	}
	return out.String(), errs.String()
}

// removed runs kubectl delete for the object a, and returns its errors.
func (k kind) removed(flags ...string) string {
	k.t.Helper()
	args := append([]string{"machines." + k.group + "/a", "--wait=false"}, flags...)
	_, errs := kubectl(k.t, kubectldelete.NewCmdDelete, args...)
	return errs
}

// described returns what kubectl describe prints of the object a, with single spaces.
func (k kind) described() string {
	k.t.Helper()
	text, _ := kubectl(k.t, func(factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
		return kubectldescribe.NewCmdDescribe("kubectl", factory, streams)
	}, "machines."+k.group+"/a")
	return strings.Join(strings.Fields(text), " ")
}

func TestKubectlIntegration(t *testing.T) {
	k := newKind(t, ours(t), "kubectl.example.com")
	k.create("a", finalizer)
	for _, step := range []struct {
		flags   []string
		warning string
		field   int64
	}{
		{[]string{"--grace-period=300"}, "", 300},
		{nil, "", 300},
		{[]string{"--grace-period=60"}, "", 60},
		{[]string{"--grace-period=90"}, "a deadline can only move earlier", 60},
	} {
		errs := k.removed(step.flags...)
		if (step.warning == "") != (errs == "") || !strings.Contains(errs, step.warning) {
			t.Errorf("%q: %s", step.flags, errs)
		}
		got := k.get("a").body
		if found := deletionOf(got); found.kind != deadline.Graceful || found.field != step.field {
			t.Errorf("%q: %+v, want %d s", step.flags, found, step.field)
		}
		end := got.GetDeletionTimestamp().UTC().Format(time.RFC3339)
		for _, want := range []string{fmt.Sprintf("Deletion Grace Period Seconds: %d", step.field),
			"Deletion Timestamp: " + end} {
			if text := k.described(); !strings.Contains(text, want) {
				t.Errorf("kubectl describe has no %q: %s", want, text)
			}
		}
	}
	if errs := k.removed("--grace-period=0", "--force"); !strings.Contains(errs, "Immediate deletion") {
		t.Errorf("%s", errs)
	}
	k.expect(k.get("a"), "a", forced)
	if text := k.described(); !strings.Contains(text, "Deletion Grace Period Seconds: 0") {
		t.Errorf("kubectl describe: %s", text)
	}
}
