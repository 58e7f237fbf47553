package metrics

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
)

// Values of the label operation_name.
const (
	Provision = "provision"
	Delete    = "delete"
	Recycle   = "recycle"
)

// Unknown is the label plugin_name of an operation without plugin.
const Unknown = "N/A"

// Operations measures how long provisioning, deletion and recycling of volumes take, from
// the first attempt until the cache shows the result, and how long single calls of in-tree
// plugins take. It is safe for concurrent use.
type Operations struct {
	mu    sync.Mutex
	begun map[types.UID]operation

	total, calls       *metrics.HistogramVec
	errorsNow, errored *metrics.CounterVec
}

type operation struct {
	plugin, name string
	start        time.Time
}

// NewOperations returns metrics that count once they are registered.
func NewOperations() *Operations {
	seconds := []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}
	byOperation := []string{"plugin_name", "operation_name"}
	return &Operations{
		begun: map[types.UID]operation{},
		total: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Name: "volume_operation_total_seconds", Buckets: seconds, StabilityLevel: metrics.ALPHA,
			Help: "Time from the first try of an operation until its end, in seconds",
		}, byOperation),
		calls: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Name: "storage_operation_duration_seconds", Buckets: seconds, StabilityLevel: metrics.ALPHA,
			Help: "Time that a single call of a volume plugin takes, in seconds",
		}, []string{"volume_plugin", "operation_name", "status", "migrated"}),
		errorsNow: metrics.NewCounterVec(&metrics.CounterOpts{
			Name: "volume_operation_errors_total", StabilityLevel: metrics.ALPHA,
			Help: "Number of failed tries of operations",
		}, byOperation),
		errored: metrics.NewCounterVec(&metrics.CounterOpts{
			Name: "volume_operation_total_errors", StabilityLevel: metrics.ALPHA,
			Help: "Number of failed tries of operations, under the name that it had before Kubernetes 1.36",
		}, byOperation),
	}
}

// Register registers the metrics.
func (o *Operations) Register(register func(metrics.Registerable) error) error {
	return errors.Join(register(o.total), register(o.calls), register(o.errorsNow), register(o.errored))
}

// Begin records the begin of the plugin's operation on the object, unless an operation is
// recorded already.
func (o *Operations) Begin(object types.UID, plugin, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, again := o.begun[object]; !again {
		o.begun[object] = operation{plugin: plugin, name: name, start: time.Now()}
	}
}

// Failed counts a failed attempt. The operation on the object continues.
func (o *Operations) Failed(object types.UID) {
	o.mu.Lock()
	begun, known := o.begun[object]
	o.mu.Unlock()
	if known {
		o.errorsNow.WithLabelValues(begun.plugin, begun.name).Inc()
		o.errored.WithLabelValues(begun.plugin, begun.name).Inc()
	}
}

// Succeeded measures and ends the operation on the object, if there is one.
func (o *Operations) Succeeded(object types.UID) {
	if begun, known := o.end(object); known {
		o.total.WithLabelValues(begun.plugin, begun.name).Observe(time.Since(begun.start).Seconds())
	}
}

// Abandoned ends the operation on the object without measuring it.
func (o *Operations) Abandoned(object types.UID) {
	o.end(object)
}

func (o *Operations) end(object types.UID) (operation, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	begun, known := o.begun[object]
	delete(o.begun, object)
	return begun, known
}

// Call measures a single call of an in-tree plugin and returns its error.
func (o *Operations) Call(plugin, name string, call func() error) error {
	start := time.Now()
	err := call()
	status := "success"
	if err != nil {
		status = "fail-unknown"
	}
	o.calls.WithLabelValues(plugin, "volume_"+name, status, "false").Observe(time.Since(start).Seconds())
	return err
}
