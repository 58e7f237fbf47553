package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/internal/answer"
)

// Cluster is a cluster whose objects may refer to volumes.
type Cluster struct {
	// Name is the name in texts.
	Name string
	// JournalNamespace is the only namespace whose journals are read, "" for all.
	JournalNamespace string
	// Timeout limits one request.
	Timeout time.Duration

	client   kubernetes.Interface
	metadata metadata.Interface
}

// NewCluster returns the cluster of a configuration. It sends no request.
func NewCluster(name string, config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS = -1 // requests are sent one after the other
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", name, err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", name, err)
	}
	return &Cluster{Name: name, Timeout: 30 * time.Second, client: client, metadata: objects}, nil
}

// reach returns an error if the API server does not answer, or does not know the user.
func (c *Cluster) reach(ctx context.Context) error {
	_, err := c.raw(ctx, "/version")
	var answer apierrors.APIStatus
	switch {
	case err == nil || errors.As(err, &answer) && !apierrors.IsUnauthorized(err) && !apierrors.IsTimeout(err):
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cluster %s did not answer within %s: %w", c.Name, c.Timeout, err)
	}
	return fmt.Errorf("reach cluster %s: %w", c.Name, err)
}

// StorageClass reads a storage class.
func (c *Cluster) StorageClass(ctx context.Context, name string) (*storagev1.StorageClass, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	class, err := c.client.StorageV1().StorageClasses().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read storage class %s in cluster %s: %w", name, c.Name, err)
	}
	return class, nil
}

// raw returns the JSON document at the path.
func (c *Cluster) raw(ctx context.Context, path string, parameters ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	request := c.client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON)
	for i := 0; i+1 < len(parameters); i += 2 {
		request = request.Param(parameters[i], parameters[i+1])
	}
	return request.Do(ctx).Raw()
}

// reading is one pass over a cluster.
type reading struct {
	*Cluster
	// refs collects the references.
	refs *references
	// visit is called for each PersistentVolume of the audited driver.
	visit func(cluster *Cluster, handle string, volume *v1.PersistentVolume)
	// attached are the names of the PersistentVolumes in VolumeAttachments of the audited
	// driver, as hashes, that were not read yet; true for the name of a provisioned volume.
	attached map[uint64]bool
	// bound are the UIDs of bound claims whose PersistentVolume was not read yet.
	bound set
}

// read reads everything that refers to volumes. PersistentVolumes are read last: what
// creates one, such as a journal entry, goes only after its PersistentVolume exists.
func (r *reading) read(ctx context.Context) {
	r.attached, r.bound = map[uint64]bool{}, set{}
	for _, list := range []func(context.Context){
		r.readJournals, r.readClaims, r.readAttachments, r.readSnapshots, r.readPods, r.readVolumes,
	} {
		list(ctx)
	}
	r.addUnknown()
}

// addUnknown adds the PersistentVolumes that VolumeAttachments name and that do not exist.
// The name of one that was not provisioned tells nothing of its volume. The volume of a claim
// that lost its PersistentVolume is wanted like that of a claim that waits for one.
func (r *reading) addUnknown() {
	r.refs.anyInFlight = r.refs.anyInFlight || len(r.bound) > 0
	for name, provisioned := range r.attached {
		r.refs.anyAttached = true
		if !provisioned {
			r.refs.unknownAttached[name] = struct{}{}
		}
	}
}

func (r *reading) readJournals(ctx context.Context) {
	r.page(ctx, schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, r.JournalNamespace,
		func(ctx context.Context, options metav1.ListOptions) (string, error) {
			list, err := answer.CheckedList(r.client.CoordinationV1().Leases(r.JournalNamespace).List(ctx, options))
			if err != nil {
				return "", err
			}
			for i := range list.Items {
				r.addLease(&list.Items[i])
			}
			return list.Continue, nil
		})
}

// addLease adds the entries of a journal, and records an entry that cannot be read.
func (r *reading) addLease(lease *coordinationv1.Lease) {
	if err := r.refs.addLease(lease); err != nil {
		r.refs.miss(fmt.Sprintf("Lease %s/%s in cluster %s has a journal entry that cannot be read: %v", lease.Namespace,
			lease.Name, r.Name, err))
	}
}

func (r *reading) readClaims(ctx context.Context) {
	claims := v1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	r.page(ctx, claims.GroupResource(), "", func(ctx context.Context, options metav1.ListOptions) (string, error) {
		list, err := answer.CheckedList(r.metadata.Resource(claims).List(ctx, options))
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			r.refs.addClaim(&list.Items[i], r.bound)
		}
		return list.Continue, nil
	})
}

func (r *reading) readAttachments(ctx context.Context) {
	r.page(ctx, storagev1.Resource("volumeattachments"), "", func(ctx context.Context,
		options metav1.ListOptions) (string, error) {
		list, err := answer.CheckedList(r.client.StorageV1().VolumeAttachments().List(ctx, options))
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			r.untranslated("VolumeAttachment", list.Items[i].Name, r.refs.addAttachment(&list.Items[i], r.attached))
		}
		return list.Continue, nil
	})
}

func (r *reading) readPods(ctx context.Context) {
	r.page(ctx, v1.Resource("pods"), "", func(ctx context.Context, options metav1.ListOptions) (string, error) {
		list, err := answer.CheckedList(r.client.CoreV1().Pods("").List(ctx, options))
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			pod := &list.Items[i]
			r.untranslated("pod", pod.Namespace+"/"+pod.Name, r.refs.addPod(pod))
		}
		return list.Continue, nil
	})
}

func (r *reading) readVolumes(ctx context.Context) {
	r.page(ctx, v1.Resource("persistentvolumes"), "", func(ctx context.Context,
		options metav1.ListOptions) (string, error) {
		list, err := answer.CheckedList(r.client.CoreV1().PersistentVolumes().List(ctx, options))
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			volume := &list.Items[i]
			r.serves(volume)
			handle, err := r.refs.addVolume(volume)
			r.untranslated("PersistentVolume", volume.Name, err)
			if handle != "" {
				r.visit(r.Cluster, handle, volume)
			}
		}
		return list.Continue, nil
	})
}

// serves removes the attachments and the claim of the volume from those without one.
func (r *reading) serves(volume *v1.PersistentVolume) {
	delete(r.attached, hash(volume.Name))
	if claim := volume.Spec.ClaimRef; claim != nil {
		delete(r.bound, hash(string(claim.UID)))
	}
}

// page reads all pages of a list. The API server serves all pages from one version of the
// objects. If that version expires meanwhile, the list starts over once.
func (r *reading) page(ctx context.Context, resource schema.GroupResource, namespace string,
	list func(context.Context, metav1.ListOptions) (string, error)) {
	options, restarted := metav1.ListOptions{Limit: pageSize}, false
	for {
		limited, cancel := context.WithTimeout(ctx, r.Timeout)
		next, err := list(limited, options)
		cancel()
		switch {
		case apierrors.IsResourceExpired(err) && !restarted:
			next, restarted = "", true
		case err != nil:
			r.refs.miss(r.unread(resource, namespace, err))
			return
		case next == "":
			return
		}
		options.Continue = next
	}
}

// unread says which list could not be read, and how that can be changed.
func (c *Cluster) unread(resource schema.GroupResource, namespace string, err error) string {
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("no right to list %s%s in cluster %s: grant the verb list on resource %s of apiGroup %q",
			resource.Resource, where, c.Name, resource.Resource, resource.Group)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("cluster %s did not list %s%s within %s", c.Name, resource, where, c.Timeout)
	}
	return fmt.Sprintf("could not list %s%s in cluster %s: %v", resource, where, c.Name, err)
}

// untranslated records that a volume of an in-tree plugin has no known handle.
func (r *reading) untranslated(kind, name string, err error) {
	if err != nil {
		r.refs.miss(fmt.Sprintf("%s %s in cluster %s: %v", kind, name, r.Name, err))
	}
}
