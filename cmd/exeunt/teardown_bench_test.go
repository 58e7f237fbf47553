package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/exeunt-io/exeunt/internal/heap"
	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/boundpairs"
)

// asProgram is the environment variable with which the test binary runs the program.
const asProgram = "EXEUNT_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	heap.Pace()
	command := newCommand("exeunt", genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	command.SetArgs(os.Args[1:])
	err := command.Execute()
	status, _ := os.ReadFile("/proc/self/status")
	_, _ = os.Stderr.Write(status)
	os.Exit(terminal.ExitStatus(err))
}

// crowded is a cluster with many volumes, each with a claim and a pod, as its API server sends them in pages.
type crowded struct {
	pairs int
	next  http.Handler
}

func (c crowded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const driver = "csi.example.com"
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	first, last, meta := c.page(r)
	var list runtime.Object
	switch resource {
	case "persistentvolumes":
		all := &v1.PersistentVolumeList{ListMeta: meta}
		for number := first; number < last; number++ {
			all.Items = append(all.Items, *boundpairs.Volume(number, driver))
		}
		list = all
	case "persistentvolumeclaims":
		all := &v1.PersistentVolumeClaimList{ListMeta: meta}
		for number := first; number < last; number++ {
			all.Items = append(all.Items, *boundpairs.Claim(number, driver))
		}
		list = all
	case "pods":
		all := &v1.PodList{ListMeta: meta}
		for number := first; number < last; number++ {
			all.Items = append(all.Items, *boundpairs.Pod(number))
		}
		list = all
	default:
		c.next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	_ = scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), v1.SchemeGroupVersion).
		Encode(list, w)
}

// page returns the range of the numbers that the request asks for.
func (c crowded) page(r *http.Request) (first, last int, meta metav1.ListMeta) {
	query := r.URL.Query()
	first, _ = strconv.Atoi(query.Get("continue"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	last = c.pairs
	if limit > 0 {
		last = min(first+limit, c.pairs)
	}
	meta.ResourceVersion = "7"
	if last < c.pairs {
		meta.Continue = fmt.Sprint(last)
	}
	return first, last, meta
}

// BenchmarkPlan prints the plan of 50,000 volumes with claims and pods by a process of its own: 30 s and 250 MB at most.
func BenchmarkPlan(b *testing.B) {
	server := httptest.NewServer(crowded{50_000, newDoomed(b).Config.Handler})
	b.Cleanup(server.Close)
	config := writeKubeconfig(b, server.URL)
	for _, format := range []string{"", "json", "yaml"} {
		b.Run("format="+format, func(b *testing.B) {
			for b.Loop() {
				began := time.Now()
				command := exec.CommandContext(b.Context(), os.Args[0], "teardown", "--kubeconfig", config, "--output="+format)
				command.Env = append(os.Environ(), asProgram+"=1")
				var stderr bytes.Buffer
				command.Stdout, command.Stderr = io.Discard, &stderr
				err := command.Run()
				if code := command.ProcessState.ExitCode(); code != 0 && code != exitRefused {
					b.Fatalf("exit code %d: %v\n%s", code, err, &stderr)
				}
				peak, err := measure.ParsePeakMemory(stderr.Bytes())
				if err != nil {
					b.Fatal(err)
				}
				took := time.Since(began)
				b.ReportMetric(float64(peak)/1e6, "MB")
				if peak > 250_000_000 || took > 30*time.Second {
					b.Errorf("%d MB, %s", peak/1e6, took)
				}
			}
		})
	}
}
