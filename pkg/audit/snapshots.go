package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/exeunt-io/exeunt/internal/answer"
)

// contents are the cluster-wide kinds of the snapshot API, which name the source volumes by
// handle.
var contents = []schema.GroupResource{
	{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshotcontents"},
	{Group: "groupsnapshot.storage.k8s.io", Resource: "volumegroupsnapshotcontents"},
}

// newGroupBackoff is for a group whose definition has just been created or removed: for a moment
// the API server lists the group, and does not find its version. It takes two seconds at most.
var newGroupBackoff = wait.Backoff{Steps: 6, Duration: 60 * time.Millisecond, Factor: 2}

// readSnapshots reads the contents of snapshots and of group snapshots. A cluster that does
// not serve a kind has none.
func (r *reading) readSnapshots(ctx context.Context) {
	for _, resource := range contents {
		var version string
		err := retry.OnError(newGroupBackoff, apierrors.IsNotFound, func() (err error) {
			version, err = r.servedVersion(ctx, resource)
			return err
		})
		switch {
		case err != nil:
			r.refs.miss(fmt.Sprintf("could not find out whether cluster %s serves %s: %v", r.Name, resource, err))
		case version != "":
			r.readContents(ctx, resource, version)
		}
	}
}

// servedVersion returns a version in which the API server serves the resource, "" if it
// does not serve the resource.
func (c *Cluster) servedVersion(ctx context.Context, resource schema.GroupResource) (string, error) {
	var groups metav1.APIGroupList
	if err := c.decode(ctx, "/apis", &groups); err != nil {
		return "", err
	}
	if groups.Kind != "APIGroupList" {
		return "", errors.New("the answer to /apis is not that of the API server")
	}
	at := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == resource.Group })
	if at < 0 {
		return "", nil
	}
	group := groups.Groups[at]
	for _, version := range append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...) {
		var served metav1.APIResourceList
		if err := c.decode(ctx, "/apis/"+version.GroupVersion, &served); err != nil {
			return "", err
		}
		if served.Kind != "APIResourceList" {
			return "", fmt.Errorf("the answer to /apis/%s is not that of the API server", version.GroupVersion)
		}
		if slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
			return version.Version, nil
		}
	}
	return "", nil
}

func (c *Cluster) decode(ctx context.Context, path string, into any, parameters ...string) error {
	text, err := c.raw(ctx, path, parameters...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}

// contentPage is a page of snapshot contents of any version.
type contentPage struct {
	Metadata metav1.ListMeta
	Items    []struct{ Spec, Status any }
}

func (r *reading) readContents(ctx context.Context, resource schema.GroupResource, version string) {
	path := "/apis/" + resource.Group + "/" + version + "/" + resource.Resource
	r.page(ctx, resource, "", func(ctx context.Context, options metav1.ListOptions) (string, error) {
		parameters := []string{"limit", strconv.Itoa(pageSize)}
		if options.Continue != "" {
			parameters = append(parameters, "continue", options.Continue)
		}
		var page contentPage
		if err := r.decode(ctx, path, &page, parameters...); err != nil {
			return "", err
		}
		if _, err := answer.CheckedList(&page.Metadata, nil); err != nil {
			return "", err
		}
		for _, item := range page.Items {
			r.addHandles(item.Spec)
			r.addHandles(item.Status)
			r.addSnapshot(item.Spec)
		}
		return page.Metadata.Continue, nil
	})
}

// addHandles adds the handles in the fields volumeHandle and volumeHandles, wherever the
// version has them.
func (r *reading) addHandles(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			r.addHandles(element)
		}
	case map[string]any:
		r.addTraced(value)
		for key, element := range value {
			switch handle, isText := element.(string); {
			case key == "volumeHandle" && isText:
				r.refs.use(r.refs.snapshots, handle)
			case key == "volumeHandles":
				r.addHandleList(element)
			default:
				r.addHandles(element)
			}
		}
	}
}

// addTraced adds a snapshot of a group whose content names the source volume beside it.
func (r *reading) addTraced(pair map[string]any) {
	snapshot, _ := pair["snapshotHandle"].(string)
	if source, _ := pair["volumeHandle"].(string); source != "" {
		r.refs.tracedIDs.add(snapshot)
	}
}

// addSnapshot adds a snapshot of the audited driver that was not taken by Kubernetes: its
// content names the snapshot, and only the driver knows the source volume.
func (r *reading) addSnapshot(spec any) {
	content, _ := spec.(map[string]any)
	source, _ := content["source"].(map[string]any)
	if driver, _ := content["driver"].(string); !r.refs.isOwn(driver) {
		return
	}
	if id, isText := source["snapshotHandle"].(string); isText {
		r.refs.snapshotIDs.add(id)
	}
	group, _ := source["groupSnapshotHandles"].(map[string]any)
	ids, _ := group["volumeSnapshotHandles"].([]any)
	for _, element := range ids {
		if id, isText := element.(string); isText {
			r.refs.snapshotIDs.add(id)
		}
	}
}

func (r *reading) addHandleList(value any) {
	list, _ := value.([]any)
	for _, element := range list {
		if handle, isText := element.(string); isText {
			r.refs.use(r.refs.snapshots, handle)
		}
	}
}

// readSnapshotSources asks the driver for the source volumes of snapshots that contents name
// without a source. A snapshot that the driver does not list may have any source.
func (s *survey) readSnapshotSources(ctx context.Context) {
	wanted := maps.Clone(s.refs.snapshotIDs)
	for id := range s.refs.tracedIDs {
		delete(wanted, id)
	}
	switch {
	case len(wanted) == 0:
	case s.Driver == nil:
		s.refs.miss("the volumes of imported snapshots are not known without --csi-address")
	case !s.Driver.ListsSnapshots():
		s.refs.miss(fmt.Sprintf("driver %s has no capability LIST_SNAPSHOTS, so the volumes of imported snapshots are not known", s.driverName))
	default:
		if err := s.listSnapshots(ctx, wanted); err != nil {
			s.refs.miss(fmt.Sprintf("driver %s did not list its snapshots: %v", s.driverName, err))
		} else if len(wanted) > 0 {
			s.refs.miss(fmt.Sprintf("driver %s does not tell of %d imported snapshots of which volumes they were taken",
				s.driverName, len(wanted)))
		}
	}
}

// listSnapshots adds the source volumes of the wanted snapshots, and removes those whose
// source is known from wanted.
func (s *survey) listSnapshots(ctx context.Context, wanted set) error {
	pages := pageCheck{seen: set{}, tokens: set{}}
	request := &spec.ListSnapshotsRequest{MaxEntries: pageSize}
	for {
		page, err := s.Driver.ListSnapshots(ctx, request)
		if err != nil {
			return err
		}
		for _, entry := range page.GetEntries() {
			snapshot := entry.GetSnapshot()
			if err := pages.addEntry("snapshot", snapshot.GetSnapshotId()); err != nil {
				return err
			}
			if source := snapshot.GetSourceVolumeId(); source != "" && wanted.has(snapshot.GetSnapshotId()) {
				s.refs.use(s.refs.snapshots, source)
				delete(wanted, hash(snapshot.GetSnapshotId()))
			}
		}
		if request.StartingToken = page.GetNextToken(); request.StartingToken == "" {
			return nil
		}
		if err := pages.addToken(request.StartingToken, len(page.GetEntries())); err != nil {
			return err
		}
	}
}
