//! Data that operations keep in a GPU's memory from image to image. They belong to the GPU as it was opened: after a failure
//! it is opened again once all its memory has been given back, and the new context knows no address of the old one.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// An operation's right to keep data on GPUs. The data are freed after it is dropped.
#[derive(Clone, Debug, Default)]
pub struct Tenant(Arc<()>);

/// The data that are kept on one GPU.
#[derive(Default)]
pub(super) struct Residents(Mutex<Vec<Resident>>);

/// Data of one tenant.
struct Resident {
    tenant: Weak<()>,
    data: Arc<dyn Any + Send + Sync>,
}

impl Residents {
    /// The data that are kept for `tenant`. If there are none yet, `make` makes them while other threads wait.
    ///
    /// # Errors
    /// Those of `make`.
    pub(super) fn get_or_make<T: Any + Send + Sync, E>(
        &self,
        tenant: &Tenant,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|resident| resident.tenant.strong_count() > 0);
        let is_own = |resident: &&Resident| resident.tenant.as_ptr() == Arc::as_ptr(&tenant.0);
        let known = all.iter().find(is_own);
        let known = known.map(|resident| resident.data.clone());
        if let Some(known) = known.and_then(|data| data.downcast().ok()) {
            return Ok(known);
        }
        let data = Arc::new(make()?);
        all.push(Resident {
            tenant: Arc::downgrade(&tenant.0),
            data: data.clone(),
        });
        Ok(data)
    }
}

impl fmt::Debug for Residents {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Residents")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tenant_has_its_own_until_it_is_gone() {
        let (gpu, first, second) = (Residents::default(), Tenant::default(), Tenant::default());
        let keep = |tenant: &Tenant, number: u32| gpu.get_or_make(tenant, || Ok::<u32, ()>(number));
        assert_eq!(keep(&first, 1), Ok(Arc::new(1)));
        assert_eq!(keep(&first, 2), Ok(Arc::new(1)));
        let kept = keep(&second, 3).expect("made");
        assert_eq!(*kept, 3);
        assert_eq!(
            gpu.get_or_make(&Tenant::default(), || Err::<u32, u8>(4)),
            Err(4)
        );
        drop(second);
        assert_eq!(Arc::strong_count(&kept), 2);
        assert_eq!(keep(&first, 5), Ok(Arc::new(1)));
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
