package journal

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
)

// Limits of an entry, in bytes.
const (
	// MaxEncoded is the greatest length of an encoded entry.
	MaxEncoded = 8 << 10
	// MaxReason is the greatest length of Unresolved.Reason; Encode truncates a longer reason.
	MaxReason = 512
	// reserve is added to MaxEncoded for entries with CustodyBroken or Unresolved set: every
	// entry in a Lease must have space for these fields.
	reserve = 2 << 10
	// mark is added to MaxEncoded for entries with Announced set.
	mark = 64
	// maxDecoded is the greatest size of a decoded entry.
	maxDecoded = 1 << 20
)

// ErrTooLarge: the entry exceeds MaxEncoded bytes, even with a shortened topology.
var ErrTooLarge = errors.New("the request is too large for the journal")

// format is the first character of an encoded entry: the version of encoding and dictionary.
const format = "1"

// dictionary has the common text of entries, so that an entry compresses to a few hundred
// bytes. The dictionary must never change: a new dictionary needs a new format.
const dictionary = `"superseded":[{"topologyCut":true,"custodyBroken":true,"unresolved":{"reason":"","since":17,"finish":true}` +
	`"cloneSource":"volumeContentSource":{"snapshot":{"snapshotId":"snap-"}}"volume":{"volumeId":"` +
	`"mutableParameters":{"iops":"throughput":"local-path","SINGLE_NODE_MULTI_WRITER"MULTI_NODE_MULTI_WRITER"MULTI_NODE_READER_ONLY` +
	`"block":{}"Block"ReadWriteMany"ReadOnlyMany"ReadWriteOncePod"Retain"kubernetes.io/aws-ebs"kubernetes.io/gce-pd` +
	`"nodeStageSecretRef":{"name":"","namespace":"kube-system"}"controllerExpandSecretRef":{"nodePublishSecretRef":{"controllerPublishSecretRef":{` +
	`"secret":{"namespace":"","name":"","uid":"` +
	`{"namespace":"default","name":"data-0","node":"node-1","state":"discarding","handle":"","request":{"name":"pvc-",` +
	`"capacityRange":{"requiredBytes":"1073741824"},"volumeCapabilities":[{"mount":{"fsType":"ext4","mountFlags":["noatime"]},"accessMode":{"mode":"SINGLE_NODE_WRITER"}}],` +
	`"parameters":{"type":"gp3","csi.storage.k8s.io/pv/name":"pvc-","csi.storage.k8s.io/pvc/name":"","csi.storage.k8s.io/pvc/namespace":""},` +
	`"accessibilityRequirements":{"requisite":[{"segments":{"topology.kubernetes.io/zone":"us-east-1a","topology.kubernetes.io/region":"","kubernetes.io/hostname":""}}],` +
	`"preferred":[{"segments":{"topology.kubernetes.io/zone":"` +
	`"volume":{"metadata":{"name":"pvc-","annotations":{"pv.kubernetes.io/provisioned-by":"csi.example.com",` +
	`"volume.kubernetes.io/provisioner-deletion-secret-name":"","volume.kubernetes.io/provisioner-deletion-secret-namespace":""},` +
	`"finalizers":["external-provisioner.volume.kubernetes.io/finalizer"]},` +
	`"spec":{"capacity":{"storage":"1Gi"},"csi":{"driver":"csi.example.com","volumeHandle":"","fsType":"ext4",` +
	`"volumeAttributes":{"storage.kubernetes.io/csiProvisionerIdentity":"17-"}},"accessModes":["ReadWriteOnce"],` +
	`"claimRef":{"kind":"PersistentVolumeClaim","namespace":"default","name":"","uid":"","apiVersion":"v1","resourceVersion":""},` +
	`"persistentVolumeReclaimPolicy":"Delete","storageClassName":"standard","volumeMode":"Filesystem"},"status":{}}}`

// writers are expensive to create (800 KB); BestSpeed would ignore the dictionary.
var writers = sync.Pool{New: func() any {
	writer, err := flate.NewWriterDict(io.Discard, flate.DefaultCompression, []byte(dictionary))
	if err != nil { // only for a level that does not exist
		panic(err)
	}
	return writer
}}

// Encode returns the entry as the value of an annotation. The topology of a large entry is
// shortened to one segment per request. If the entry is still too large, the error is
// [ErrTooLarge].
func Encode(e Entry) (string, error) {
	e.TopologyCut = e.TopologyCut || e.Request.TopologyCut || slices.ContainsFunc(e.Superseded,
		func(r Request) bool { return r.TopologyCut })
	text, err := encode(e)
	if errors.Is(err, ErrTooLarge) {
		text, err = encode(withCutTopology(e))
	}
	if err != nil {
		return "", fmt.Errorf("encode the journal entry of claim %s/%s: %w", e.Namespace, e.Name, err)
	}
	return text, nil
}

// withCutTopology returns the entry with one segment in each of its requests.
func withCutTopology(e Entry) Entry {
	e.TopologyCut, e.Request, e.Superseded = true, withFirstSegment(e.Request), slices.Clone(e.Superseded)
	for i := range e.Superseded {
		e.Superseded[i] = withFirstSegment(e.Superseded[i])
	}
	return e
}

// withFirstSegment returns the request with one topology segment: the first preferred one,
// else the first requisite one.
func withFirstSegment(r Request) Request {
	requirement := r.GetAccessibilityRequirements()
	segments := slices.Concat(requirement.GetPreferred(), requirement.GetRequisite())
	if len(segments) == 0 {
		return r
	}
	request, _ := proto.Clone(r.CreateVolumeRequest).(*csi.CreateVolumeRequest)
	request.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: segments[:1], Preferred: segments[:1]}
	return Request{CreateVolumeRequest: request}
}

func encode(e Entry) (string, error) {
	if e.Unresolved != nil && len(e.Unresolved.Reason) > MaxReason {
		unresolved := *e.Unresolved
		unresolved.Reason = strings.ToValidUTF8(unresolved.Reason[:MaxReason], "")
		e.Unresolved = &unresolved
	}
	if err := check(e); err != nil {
		return "", err
	}
	text, err := json.Marshal(e)
	switch {
	case err != nil:
		return "", err
	case len(text) > maxDecoded:
		return "", ErrTooLarge
	}
	packed, err := compress(text)
	limit := MaxEncoded
	if e.Announced {
		limit += mark
	}
	if e.CustodyBroken || e.Unresolved != nil {
		limit += reserve
	}
	switch {
	case err != nil:
		return "", err
	case len(packed) > limit:
		return "", ErrTooLarge
	}
	return packed, nil
}

func compress(text []byte) (string, error) {
	var packed bytes.Buffer
	writer, _ := writers.Get().(*flate.Writer)
	writer.Reset(&packed)
	if _, err := writer.Write(text); err != nil {
		return "", err
	}
	if err := writer.Close(); err != nil {
		return "", err
	}
	writers.Put(writer)
	return format + base64.RawStdEncoding.EncodeToString(packed.Bytes()), nil
}

// Decode returns the entry of the claim from the value of an annotation. It refuses the
// same entries as Encode.
func Decode(claim types.UID, text string) (Entry, error) {
	e, err := decode(text)
	if err != nil {
		return Entry{}, fmt.Errorf("decode the journal entry of claim UID %s: %w", claim, err)
	}
	e.UID = claim
	return e, nil
}

func decode(text string) (Entry, error) {
	plain, err := decompress(text)
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	if err := json.Unmarshal(plain, &e); err != nil {
		return Entry{}, errors.New("not an entry") // the error could quote a forged secret
	}
	e.Request.TopologyCut = e.TopologyCut
	for i := range e.Superseded {
		e.Superseded[i].TopologyCut = e.TopologyCut
	}
	return e, check(e)
}

func decompress(text string) ([]byte, error) {
	packed, is := strings.CutPrefix(text, format)
	switch {
	case !is:
		return nil, errors.New("unknown format")
	case len(text) > MaxEncoded+mark+reserve:
		return nil, ErrTooLarge
	}
	binary, err := base64.RawStdEncoding.DecodeString(packed)
	if err != nil {
		return nil, fmt.Errorf("not base64: %w", err)
	}
	source := bytes.NewReader(binary)
	plain, err := io.ReadAll(io.LimitReader(flate.NewReaderDict(source, []byte(dictionary)), maxDecoded+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("not compressed: %w", err)
	case len(plain) > maxDecoded:
		return nil, ErrTooLarge
	case source.Len() > 0:
		return nil, errors.New("followed by something else")
	}
	return plain, nil
}

// check returns an error for an incomplete or contradictory entry.
func check(e Entry) error {
	requests := append([]Request{e.Request}, e.Superseded...)
	switch {
	case e.Namespace == "" || e.Name == "":
		return errors.New("incomplete: no claim")
	case e.VolumeName() == "":
		return errors.New("incomplete: no volume name")
	case e.State != Requested && e.State != Discarding:
		return errors.New("unknown state")
	case e.State == Discarding && e.Handle == "":
		return errors.New("incomplete: no handle of the volume to be discarded")
	case !utf8.ValidString(e.Handle):
		return errors.New("the handle is not UTF-8")
	case slices.ContainsFunc(requests, func(r Request) bool { return r.VolumeName() != e.Volume.Name }):
		return errors.New("a request is not for the volume of the entry")
	case slices.ContainsFunc(requests, Request.isAmbiguous):
		return errors.New("a request has no kind, or two")
	case slices.ContainsFunc(requests, func(r Request) bool { return len(r.GetSecrets()) > 0 }):
		return errors.New("a request has secrets")
	}
	return nil
}

// isAmbiguous reports whether the request has no kind or two kinds.
func (r Request) isAmbiguous() bool {
	return r.Payload != nil && (r.Payload.Kind == "" || r.CreateVolumeRequest != nil)
}
