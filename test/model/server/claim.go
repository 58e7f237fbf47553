package server

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	betaClass    = v1.BetaStorageClassAnnotation
	defaultClass = "storageclass.kubernetes.io/is-default-class"
)

func claimDefaults(d document) {
	setDefault(child(d, "status"), "phase", string(v1.ClaimPending))
	setDefault(child(d, "spec"), "volumeMode", string(v1.PersistentVolumeFilesystem))
}

func createClaim(c Cluster, d document) {
	addFinalizer(d, claimProtection)
	d["status"] = document{"phase": string(v1.ClaimPending)}
	spec := child(d, "spec")
	normalizeSources(spec)
	_, annotated := text(d, "metadata", "annotations", betaClass)
	if name := c.defaultClass(); spec["storageClassName"] == nil && !annotated && name != "" {
		spec["storageClassName"] = name
	}
}

// defaultClass returns the name of the default storage class, the first of several.
func (c Cluster) defaultClass() string {
	for _, object := range c.ofResource("storageclasses") {
		if d, err := decode(object.JSON); err == nil {
			if value, _ := text(d, "metadata", "annotations", defaultClass); value == "true" {
				return object.Name
			}
		}
	}
	return ""
}

// normalizeSources copies dataSource to dataSourceRef, or the other way around.
func normalizeSources(spec document) {
	source, reference := spec["dataSource"], spec["dataSourceRef"]
	switch {
	case source != nil && reference == nil:
		spec["dataSourceRef"] = source
	case source == nil && reference != nil && at(spec, "dataSourceRef", "namespace") == nil:
		spec["dataSource"] = reference
	}
}

func updateClaim(subresource string, now, old document) {
	if subresource != "" {
		now["spec"] = old["spec"]
		return
	}
	now["status"] = old["status"]
	normalizeSources(child(now, "spec"))
}

func checkClaim(now, old document) problems {
	spec := child(now, "spec")
	found := slices.Concat(
		required(spec["accessModes"], "spec", "accessModes"),
		required(at(spec, "resources", "requests", "storage"), "spec", "resources[storage]"),
	)
	if size := storageOf(spec); len(found) == 0 && size.Sign() <= 0 {
		found = append(found, field.Invalid(field.NewPath("spec", "resources[storage]"), size.String(),
			"must be greater than zero"))
	}
	if old == nil {
		return found
	}
	return append(found, checkClaimChange(now, old)...)
}

// checkClaimChange returns the forbidden changes of the spec.
func checkClaimChange(now, old document) problems {
	spec, before := child(now, "spec"), child(old, "spec")
	wanted := without(spec)
	if name, _ := text(before, "volumeName"); name == "" {
		put(wanted, "volumeName", before["volumeName"])
	}
	found := allowClass(now, old, wanted)
	bound := at(now, "status", "phase") == string(v1.ClaimBound)
	if bound {
		put(wanted, "volumeAttributesClassName", before["volumeAttributesClassName"])
		if requests, ok := at(spec, "resources", "requests").(document); ok {
			requests = without(requests)
			put(requests, "storage", at(before, "resources", "requests", "storage"))
			resources := without(child(spec, "resources"))
			resources["requests"] = requests
			wanted["resources"] = resources
		}
	}
	if !equal(wanted, before) {
		found = append(found, field.Forbidden(field.NewPath("spec"),
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	size, oldSize, capacity := storageOf(spec), storageOf(before), quantityAt(old, "status", "capacity", "storage")
	if size.Cmp(oldSize) < 0 && size.Cmp(capacity) <= 0 {
		found = append(found, field.Forbidden(field.NewPath("spec", "resources", "requests", "storage"),
			"field can not be less than status.capacity"))
	}
	return append(found, immutable(spec["volumeMode"], before["volumeMode"], "volumeMode")...)
}

// allowClass removes from wanted a class that may be set, and returns a forbidden change of
// the annotation that was once the class.
func allowClass(now, old, wanted document) problems {
	oldClass, oldAnnotation := at(old, "spec", "storageClassName"), at(old, "metadata", "annotations", betaClass)
	class, annotation := wanted["storageClassName"], at(now, "metadata", "annotations", betaClass)
	if oldClass == nil && class != nil && (oldAnnotation == nil || class == oldAnnotation) {
		delete(wanted, "storageClassName")
		if oldAnnotation != nil && annotation == nil {
			return nil
		}
	}
	return immutable(annotation, oldAnnotation, "metadata", "annotations", betaClass)
}

// admitClaim refuses to grow a claim whose class does not allow it.
func admitClaim(c Cluster, r *resourceRules, now, old document) *Response {
	size, oldSize := storageOf(child(now, "spec")), storageOf(child(old, "spec"))
	if size.Cmp(oldSize) <= 0 {
		return nil
	}
	name, _ := text(old, "spec", "storageClassName")
	class, _ := c.Get(Key{Resource: "storageclasses", Name: name})
	if class.JSON != "" {
		if d, err := decode(class.JSON); err == nil && at(d, "allowVolumeExpansion") == true {
			return nil
		}
	}
	claim, _ := text(old, "metadata", "name")
	return forbidden(route{resource: r, name: claim},
		"only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
}

func storageOf(spec document) resource.Quantity {
	return quantityAt(spec, "resources", "requests", "storage")
}

func quantityAt(d document, path ...string) resource.Quantity {
	s, _ := text(d, path...)
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return resource.Quantity{}
	}
	return q
}
