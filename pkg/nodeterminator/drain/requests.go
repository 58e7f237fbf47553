package drain

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Lanes returns clients for evictions and for forced deletions. They share no connection and no rate limit, so that a
// webhook that delays evictions delays no deletion.
func Lanes(config *rest.Config) (evictions, forced rest.Interface, err error) {
	var lanes [2]rest.Interface
	for i := range lanes {
		lane := rest.CopyConfig(config)
		lane.QPS, lane.RateLimiter = -1, nil
		if lane.Dial == nil { // one of its own keeps the client from sharing a connection
			lane.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
		}
		client, err := corev1.NewForConfig(lane)
		if err != nil {
			return nil, nil, fmt.Errorf("make client: %w", err)
		}
		lanes[i] = client.RESTClient()
	}
	return lanes[0], lanes[1], nil
}

// evict asks for an eviction. The grace period is explicit: the API server's default may lie beyond P. The client must
// not repeat the request by itself: a 429 of a new budget asks for 10 s, in which others could go first.
func evict(ctx context.Context, client rest.Interface, p *v1.Pod, seconds int64) error {
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: optionsFor(p, seconds)}
	answer := &metav1.Status{}
	err := client.Post().Namespace(p.Namespace).Resource("pods").Name(p.Name).SubResource("eviction").MaxRetries(0).
		Body(eviction).Do(ctx).Into(answer)
	if err == nil && answer.Status == metav1.StatusFailure { // two budgets: a failure that is answered as a success
		err = &apierrors.StatusError{ErrStatus: *answer}
	}
	return err
}

// deletePod deletes the pod with this UID.
func deletePod(ctx context.Context, client rest.Interface, p *v1.Pod, seconds int64) error {
	return client.Delete().Namespace(p.Namespace).Resource("pods").Name(p.Name).MaxRetries(0).
		Body(optionsFor(p, seconds)).Do(ctx).Error()
}

func optionsFor(p *v1.Pod, seconds int64) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{GracePeriodSeconds: &seconds, Preconditions: &metav1.Preconditions{UID: &p.UID}}
}

// disruptionReason is the reason of our condition DisruptionTarget, byEvictionAPI that of an eviction.
const disruptionReason, byEvictionAPI = "DeletionByNodeTerminator", "EvictionByEvictionAPI"

// markDisrupted sets the condition DisruptionTarget, by which a Job tells a disruption from a failure of its pod. A pod
// that is removed also becomes Failed: else the Job would wait for its end for ever.
func markDisrupted(ctx context.Context, client rest.Interface, p *v1.Pod, message string,
	failed bool, now time.Time) error {
	status := map[string]any{"conditions": []map[string]any{{
		"type": v1.DisruptionTarget, "status": v1.ConditionTrue, "reason": disruptionReason, "message": message,
		"lastTransitionTime": metav1.NewTime(now), "lastProbeTime": nil,
	}}}
	if failed {
		status["phase"] = v1.PodFailed
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encode condition: %w", err)
	}
	return client.Patch(types.StrategicMergePatchType).Namespace(p.Namespace).Resource("pods").Name(p.Name).
		SubResource("status").MaxRetries(0).Body(body).Do(ctx).Error()
}

// disruptedBy returns the reason of the condition DisruptionTarget, "" if the pod does not have it.
func disruptedBy(p *v1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}
