package controller

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// Recorder returns a recorder whose events name the component, and a function that
// stops. Events are also sent after the context has ended, while workers finish their objects;
// those of the last moment before the stop may be lost.
func Recorder(ctx context.Context, client kubernetes.Interface, component string,
	options ...record.BroadcasterOption) (record.EventRecorder, func()) {
	return RecorderTo(ctx, &corev1.EventSinkImpl{Interface: client.CoreV1().Events(v1.NamespaceAll)}, component,
		options...)
}

// RecorderTo is Recorder with a sink that writes the events.
func RecorderTo(ctx context.Context, sink record.EventSink, component string,
	options ...record.BroadcasterOption) (record.EventRecorder, func()) {
	broadcaster := record.NewBroadcaster(append(options, record.WithContext(context.WithoutCancel(ctx)))...)
	broadcaster.StartRecordingToSink(sink)
	return broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: component}), broadcaster.Shutdown
}
