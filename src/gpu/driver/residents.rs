//! What operations keep in a GPU's memory from image to image. It belongs to the GPU as it was opened: one that has
//! failed is opened anew when all its memory has been given back, and another context knows no address of the old one.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// An operation's right to keep things on GPUs: they are given back after it is dropped.
#[derive(Clone, Debug, Default)]
pub struct Tenant(Arc<()>);

/// The things that are kept on one GPU, each with the tenant that it is for.
#[derive(Default)]
pub(super) struct Residents(Mutex<Vec<Resident>>);

type Resident = (Weak<()>, Arc<dyn Any + Send + Sync>);

impl Residents {
    /// What is kept for `tenant`; made by `make` if there is nothing yet, while others wait.
    ///
    /// # Errors
    /// Those of `make`.
    pub(super) fn of<T: Any + Send + Sync, E>(
        &self,
        tenant: &Tenant,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(tenant, _)| tenant.strong_count() > 0);
        let mine = |(known, _): &&Resident| known.as_ptr() == Arc::as_ptr(&tenant.0);
        let known = all.iter().find(mine).map(|(_, kept)| kept.clone());
        if let Some(known) = known.and_then(|kept| kept.downcast().ok()) {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        all.push((Arc::downgrade(&tenant.0), made.clone()));
        Ok(made)
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
        let keep = |tenant: &Tenant, number: u32| gpu.of(tenant, || Ok::<u32, ()>(number));
        assert_eq!(keep(&first, 1), Ok(Arc::new(1)));
        assert_eq!(keep(&first, 2), Ok(Arc::new(1)));
        let kept = keep(&second, 3).expect("made");
        assert_eq!(*kept, 3);
        assert_eq!(gpu.of(&Tenant::default(), || Err::<u32, u8>(4)), Err(4));
        drop(second);
        assert_eq!(Arc::strong_count(&kept), 2);
        assert_eq!(keep(&first, 5), Ok(Arc::new(1)));
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
